// SPDX-License-Identifier: Apache-2.0

package s3store

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
)

const (
	dialTimeout = 10 * time.Second
	// idleConnections are kept per host: a worker's uploads come in bursts.
	idleConnections = 128
)

// defaultRegion is what services other than AWS take for granted.
const defaultRegion = "us-east-1"

// connect makes a client of what the options and the AWS tools' configuration say. It
// asks nobody anything yet.
func connect(ctx context.Context, opts Options) (*Store, error) {
	load := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if opts.Region != "" {
		load = append(load, config.WithRegion(opts.Region))
	}
	if opts.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(opts.Profile))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, configError(err)
	}
	s := &Store{
		bucket: &opts.Bucket, readOnly: opts.ReadOnly, retryer: newRetryer(opts.Attempts),
		buffers: newBuffers(opts.Buffers, opts.PartSize), transport: transport(cfg),
	}
	if opts.Prefix != "" {
		s.prefix = opts.Prefix + "/"
	}
	s.client = s3.NewFromConfig(cfg, func(o *s3.Options) {
		if opts.Endpoint != "" {
			o.BaseEndpoint = &opts.Endpoint
		}
		opts.Endpoint = aws.ToString(o.BaseEndpoint)
		s.configure(o, &opts)
	})
	if err := checkEndpoint(opts.Endpoint); err != nil {
		return nil, err
	}
	if opts.Region == "" && s.client.Options().Region == "" {
		return nil, errors.New("no region is given: set AWS_REGION, or write region=… in the store's URL")
	}
	s.opts = opts
	return s, nil
}

// configure completes the client's options, and ours with what they say.
func (s *Store) configure(o *s3.Options, opts *Options) {
	custom := opts.Endpoint != ""
	if custom {
		o.Region = cmp.Or(o.Region, defaultRegion)
	}
	o.UsePathStyle = custom
	if opts.PathStyle != nil {
		o.UsePathStyle = *opts.PathStyle
	}
	switch {
	case opts.Checksum == WhenRequired, opts.Checksum == "" && custom && os.Getenv("AWS_REQUEST_CHECKSUM_CALCULATION") == "":
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	case opts.Checksum == WhenSupported:
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
	}
	if custom && os.Getenv("AWS_RESPONSE_CHECKSUM_VALIDATION") == "" {
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	}
	o.DisableLogOutputChecksumValidationSkipped = true
	o.HTTPClient = &http.Client{
		Transport:     s.transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	o.Credentials = namedErrors{o.Credentials}
	o.Retryer = s.retryer
	o.APIOptions = append(o.APIOptions, agent(opts.Version))
}

func agent(version string) func(*middleware.Stack) error {
	if version == "" {
		return awsmiddleware.AddUserAgentKey("tidemill")
	}
	return awsmiddleware.AddUserAgentKeyValue("tidemill", version)
}

// transport is the SDK's, with the certificates of AWS_CA_BUNDLE if that is set, and ours
// to close.
func transport(cfg aws.Config) *http.Transport {
	base, ok := cfg.HTTPClient.(*awshttp.BuildableClient)
	if !ok {
		base = awshttp.NewBuildableClient()
	}
	t := base.WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).GetTransport()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConnections, idleConnections
	return t
}

func (s *Store) createBucket(ctx context.Context) error {
	in := &s3.CreateBucketInput{Bucket: s.bucket}
	// Only AWS has to be told, and its first region must not be named.
	if region := s.client.Options().Region; s.opts.Endpoint == "" && region != defaultRegion {
		in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(region)}
	}
	err := s.call(ctx, 0, func(ctx context.Context, o func(*s3.Options)) error {
		_, err := s.client.CreateBucket(ctx, in, o)
		return err
	})
	if code := codeOf(err); code == "BucketAlreadyOwnedByYou" || code == "BucketAlreadyExists" {
		return nil // somebody was faster; if it is a stranger's, the next request says so
	}
	return s.explain(ctx, opCreateBucket, err)
}

// SPDX-License-Identifier: Apache-2.0

package s3store

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/tidemill/tidemill/bundle"
)

// Modes of [Options.Checksum].
const (
	WhenRequired  = "when_required"
	WhenSupported = "when_supported"
)

// Options says where a store is. What is empty comes from where the AWS tools have it:
// environment variables, then the profile. Credentials come from nowhere else.
type Options struct {
	// Bucket that holds the store.
	Bucket string
	// Prefix of its objects' names, without slashes at its ends; at most 100 bytes.
	// Default none.
	Prefix string
	// Endpoint is the URL of a service other than AWS. Default AWS_ENDPOINT_URL_S3,
	// AWS_ENDPOINT_URL, the profile's, AWS.
	Endpoint string
	// Region of the bucket. Default AWS_REGION, the profile's; us-east-1 where there is an
	// endpoint.
	Region string
	// Profile of the AWS tools' files. Default AWS_PROFILE.
	Profile string
	// PathStyle puts the bucket into the path instead of the host name. Default: where
	// there is an endpoint.
	PathStyle *bool
	// Checksum is when requests carry a checksum beyond the signature's: WhenSupported or
	// WhenRequired, which services that don't know such checksums need. Default
	// AWS_REQUEST_CHECKSUM_CALCULATION, else WhenRequired where there is an endpoint.
	Checksum string
	// CreateBucket makes the bucket if there is none.
	CreateBucket bool
	// ReadOnly refuses calls that write, with [bundle.ErrDenied].
	ReadOnly bool

	// Version of the program, for the user agent. Default none.
	Version string

	// Timeout of one attempt of a request that carries little; one that carries much has a
	// second more for each 128 KiB. Also how long a body may give nothing. Default 30 s.
	Timeout time.Duration
	// Attempts of a request at most. Default 6.
	Attempts int
	// PartSize in bytes: what is larger goes up in parts. At least 5 MiB, which services
	// ask for. Default 8 MiB.
	PartSize int64
	// Buffers of a part's size, at most, for readers that can't seek, over all calls.
	// Default 16.
	Buffers int
}

const minPart = 5 << 20

// withDefaults returns a completed copy; what the AWS tools decide stays empty.
func (o Options) withDefaults() Options {
	o.Prefix = strings.Trim(o.Prefix, "/")
	o.Endpoint = strings.TrimRight(o.Endpoint, "/")
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.Attempts = cmp.Or(o.Attempts, 6)
	o.PartSize = cmp.Or(o.PartSize, 8<<20)
	o.Buffers = cmp.Or(o.Buffers, 16)
	return o
}

// bucketName is what names of buckets are made of; services differ in the rest.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{2,62}$`)

// Validate reports everything that is wrong.
func (o Options) Validate() error {
	o = o.withDefaults()
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !bucketName.MatchString(o.Bucket) {
		bad("bucket %.100q: want 3 to 63 letters, digits, dots and hyphens", o.Bucket)
	}
	if o.Prefix != "" && (bundle.CheckKey(o.Prefix) != nil || len(o.Prefix) > maxPrefix) {
		bad("prefix %.120q: want at most %d bytes of letters, digits, . _ - ~ in segments that don't begin with a dot", o.Prefix, maxPrefix)
	}
	if err := checkEndpoint(o.Endpoint); err != nil {
		errs = append(errs, err)
	}
	if o.Checksum != "" && o.Checksum != WhenRequired && o.Checksum != WhenSupported {
		bad("checksum %.40q: want %s or %s", o.Checksum, WhenRequired, WhenSupported)
	}
	if o.Timeout < 0 || o.Attempts < 1 || o.Buffers < 1 {
		bad("timeout %s, attempts %d, buffers %d: want all above 0", o.Timeout, o.Attempts, o.Buffers)
	}
	if o.PartSize < minPart || o.PartSize > 5<<30 {
		bad("part size %d: want %d to %d bytes", o.PartSize, int64(minPart), int64(5)<<30)
	}
	return errors.Join(errs...)
}

// checkEndpoint never shows what it refuses: there may be a password in it.
func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return errors.New("the endpoint is no URL: want for example https://s3.example.com")
	case u.User != nil:
		return fmt.Errorf("the endpoint has a user or password in it; %s", credentialsHint)
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("the endpoint has a query or fragment: want for example https://s3.example.com")
	}
	return nil
}

const credentialsHint = "credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the machine's role"

// SPDX-License-Identifier: Apache-2.0

package s3store

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/tidemill/tidemill/bundle"
)

// credentialsError says that there are no credentials, or that they can't be renewed.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return "no credentials: " + e.err.Error() }
func (e *credentialsError) Unwrap() error { return e.err }

// namedErrors is a provider whose errors can be told from those of the store.
type namedErrors struct{ aws.CredentialsProvider }

func (p namedErrors) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if p.CredentialsProvider == nil {
		return aws.Credentials{}, &credentialsError{errors.New("none are configured")}
	}
	c, err := p.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		return c, &credentialsError{err}
	}
	return c, nil
}

// haveCredentials looks for credentials before any request is made without.
func (s *Store) haveCredentials(ctx context.Context) error {
	_, err := s.client.Options().Credentials.Retrieve(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if c, ok := errors.AsType[*credentialsError](err); ok {
		err = c.err
	}
	return fmt.Errorf("%w: no AWS credentials could be had; %s: %w", bundle.ErrDenied, credentialsHint, err)
}

// configError explains why the AWS tools' configuration can't be read.
func configError(err error) error {
	return fmt.Errorf("the configuration of the AWS tools can't be used (environment variables, or the files in ~/.aws): %w", err)
}

// transient says whether an error of the network, or of a service that gives credentials,
// may pass.
func transient(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	status := statusOf(err)
	return status == 429 || status >= 500
}

// SPDX-License-Identifier: Apache-2.0

package s3store

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/tidemill/tidemill/bundle"
)

// An op is a call as errors name it, and the permission that it needs.
type op struct{ name, permission string }

var (
	opCreate       = op{"create", "s3:PutObject"}
	opSwap         = op{"swap", "s3:GetObject and s3:PutObject"}
	opPut          = op{"put", "s3:PutObject and s3:AbortMultipartUpload"}
	opGet          = op{"get", "s3:GetObject"}
	opList         = op{"list", "s3:ListBucket"}
	opDelete       = op{"delete", "s3:DeleteObject"}
	opCreateBucket = op{"create bucket", "s3:CreateBucket"}
)

// explain says what an error means for a store, and what would be right. The sentinel
// is in the chain; so is the original, unless it may show what nobody should see.
func (s *Store) explain(ctx context.Context, o op, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if status := statusOf(err); status != 0 {
		return s.explainAnswer(o, status, err)
	}
	return s.explainSilence(err)
}

// explainSilence is about what is no answer of the store.
func (s *Store) explainSilence(err error) error {
	if c, ok := errors.AsType[*credentialsError](err); ok {
		return fmt.Errorf("%w: credentials could not be renewed: %w", bundle.ErrUnavailable, c.err)
	}
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case authority || host || invalid:
		return fmt.Errorf("the certificate of %s isn't trusted; AWS_CA_BUNDLE can name the authority's file: %w", s.at(), cause(err))
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("%s speaks http, not https: write http:// in the endpoint", s.at())
	}
	if _, ok := errors.AsType[*smithyhttp.RequestSendError](err); ok {
		return fmt.Errorf("%w: %s can't be reached: %w", bundle.ErrUnavailable, s.at(), cause(err))
	}
	if slow, ok := errors.AsType[*slowError](err); ok {
		return fmt.Errorf("%w: %s gave %w", bundle.ErrUnavailable, s.at(), slow)
	}
	return err
}

// at names where requests go.
func (s *Store) at() string {
	if s.opts.Endpoint != "" {
		return s.opts.Endpoint
	}
	return "S3 in " + s.client.Options().Region
}

// explainAnswer is about what the store said.
func (s *Store) explainAnswer(o op, status int, err error) error {
	code := codeOf(err)
	said := answer(status, err)
	class := func(sentinel error, format string, args ...any) error {
		return fmt.Errorf("%w: %s: %w", sentinel, fmt.Sprintf(format, args...), said)
	}
	switch code {
	case "NoSuchBucket":
		return fmt.Errorf("there is no bucket %q at %s: make it, or write create_bucket=true in the store's URL: %w", *s.bucket, s.at(), said)
	case "InvalidAccessKeyId", "XAdminUserNotFound":
		return class(bundle.ErrDenied, "%s doesn't know the access key: are AWS_ACCESS_KEY_ID or the profile meant for it?", s.at())
	case "SignatureDoesNotMatch":
		return class(bundle.ErrDenied, "the secret key is not that of the access key: look at AWS_SECRET_ACCESS_KEY or the profile")
	case "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "ExpiredTokenException":
		return class(bundle.ErrDenied, "the session has ended: sign in again, or use credentials that renew themselves")
	case "RequestTimeTooSkewed":
		return class(bundle.ErrDenied, "this machine's clock and that of %s differ too much: set this one, for example with NTP", s.at())
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "TemporaryRedirect":
		return fmt.Errorf("bucket %q is not in region %s%s: write the right region=… in the store's URL: %w",
			*s.bucket, s.client.Options().Region, elsewhere(err), said)
	case "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "InsufficientStorage", "InsufficientCapacity", "NoSpaceLeftOnDevice":
		return class(bundle.ErrNoSpace, "bucket %q can hold no more", *s.bucket)
	case "ObjectParentIsFile", "XMinioParentIsObject", "ExistingObjectIsDirectory", "XMinioObjectExistsAsDirectory", "KeyTooLongError":
		return class(bundle.ErrInvalidKey, "the key continues another with a /, is continued by one, or is too long there")
	case "NotImplemented":
		return class(errors.ErrUnsupported, "%s can't do what %s needs", s.at(), o.name)
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return class(bundle.ErrDenied, "the credentials may not %s in bucket %q: allow them %s there", o.name, *s.bucket, o.permission)
	case status == http.StatusMethodNotAllowed:
		return class(bundle.ErrDenied, "%s allows no %s", s.at(), o.name)
	case status == http.StatusInsufficientStorage:
		return class(bundle.ErrNoSpace, "bucket %q can hold no more", *s.bucket)
	case status/100 == 5, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout,
		code == "RequestTimeout", again(err).Bool():
		return class(bundle.ErrUnavailable, "%s can't now", s.at())
	}
	return said
}

func elsewhere(err error) string {
	if resp, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && resp.Response != nil {
		if region := resp.Response.Header.Get("X-Amz-Bucket-Region"); region != "" {
			return " but in " + clean(region)
		}
	}
	return ""
}

// An answerError is what the store said, in short: the SDK's errors have more lines than
// a person reads.
type answerError struct {
	status                 int
	code, message, request string
	err                    error
}

func (e *answerError) Error() string {
	text := fmt.Sprintf("it answered %d %s", e.status, e.code)
	if e.message != "" && e.message != e.code {
		text += " (" + e.message + ")"
	}
	if e.request != "" {
		text += ", request " + e.request
	}
	return text
}

func (e *answerError) Unwrap() error { return e.err }

func answer(status int, err error) *answerError {
	a := &answerError{status: status, code: http.StatusText(status), err: err}
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() != "" && api.ErrorCode() != "UnknownError" {
		a.code, a.message = clean(api.ErrorCode()), clean(api.ErrorMessage())
	}
	if r, ok := errors.AsType[interface {
		error
		ServiceRequestID() string
	}](err); ok {
		a.request = clean(r.ServiceRequestID())
	}
	return a
}

// clean makes what a server said fit for one line.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	return strings.TrimSpace(text[:min(len(text), 200)])
}

// statusOf returns the HTTP status of the answer that an error is about, 0 without.
func statusOf(err error) int {
	resp, ok := errors.AsType[*smithyhttp.ResponseError](err)
	if !ok {
		return 0
	}
	return resp.HTTPStatusCode()
}

// codeOf returns S3's word for an error, "" without.
func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

// cause is the innermost of an error of the network: what the SDK and the HTTP client add
// is where the request went, which is said already.
func cause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

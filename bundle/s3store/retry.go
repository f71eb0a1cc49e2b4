// SPDX-License-Identifier: Apache-2.0

package s3store

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
)

// retryTokens is the budget of retries that all calls share. A retry takes 14, or 5 where
// the service asked for patience, and gives them back if it succeeds: some 70 calls can
// fail for good before the next fail at once.
const retryTokens = 1000

const (
	firstPause    = 50 * time.Millisecond
	throttlePause = 200 * time.Millisecond
	longestPause  = 5 * time.Second
)

// conflicts are answers to conditional writes that raced: nothing was decided.
var conflicts = map[string]struct{}{"ConditionalRequestConflict": {}, "OperationAborted": {}}

// moreThrottles are how services other than AWS ask for patience.
var moreThrottles = map[string]struct{}{"SlowDownRead": {}, "SlowDownWrite": {}, "TooManyRequests": {}, "RequestTimeTooLong": {}}

func newRetryer(attempts int) aws.RetryerV2 {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.RateLimiter = ratelimit.NewTokenRateLimit(retryTokens)
		o.Throttles = append(o.Throttles, retry.ThrottleErrorCode{Codes: conflicts}, retry.ThrottleErrorCode{Codes: moreThrottles})
		o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(again)}, o.Retryables...)
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, err error) (time.Duration, error) {
			first := firstPause
			if throttled(err) {
				first = throttlePause
			}
			longest := min(first<<min(attempt-1, 10), longestPause)
			return longest/2 + rand.N(longest/2+1), nil
		})
	})
}

// throttled says whether the service asked for patience, and did nothing else.
func throttled(err error) bool {
	_, known := retry.DefaultThrottleErrorCodes[codeOf(err)]
	_, more := moreThrottles[codeOf(err)]
	return known || more || statusOf(err) == http.StatusTooManyRequests
}

// again knows what the SDK's own rules don't.
func again(err error) aws.Ternary {
	if _, ok := errors.AsType[*slowError](err); ok {
		return aws.TrueTernary
	}
	if err, ok := errors.AsType[*credentialsError](err); ok {
		return aws.BoolTernary(transient(err.err))
	}
	if _, ok := conflicts[codeOf(err)]; ok {
		return aws.TrueTernary
	}
	if throttled(err) {
		return aws.TrueTernary
	}
	// An answer that was cut in the middle of its XML.
	if _, ok := errors.AsType[*smithy.DeserializationError](err); ok && statusOf(err)/100 == 2 {
		return aws.TrueTernary
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || statusOf(err) == http.StatusRequestTimeout {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// watched is the shared retryer as one request has it: it remembers whether an attempt
// may have had an effect though its answer was an error, or none.
type watched struct {
	aws.RetryerV2
	unsure bool
}

func (w *watched) IsErrorRetryable(err error) bool {
	if status := statusOf(err); status/100 != 4 && !throttled(err) {
		w.unsure = true
	}
	return w.RetryerV2.IsErrorRetryable(err)
}

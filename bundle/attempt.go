// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Attempt is one attempt as the store knows it. Without an End it is running, or it
// crashed.
type Attempt struct {
	Claim Claim
	End   *AttemptEnd
}

// ListAttempts returns the attempts of a trial, of all epochs, by number.
func ListAttempts(ctx context.Context, s Store, keys Keys, trial string) ([]Attempt, error) {
	ended := map[int]bool{} // every number seen; true if it has an end
	prefix := keys.Attempts(trial)
	for info, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("attempts of trial %s: %w", trial, err)
		}
		if n, end, ok := parseAttemptName(strings.TrimPrefix(info.Key, prefix)); ok {
			ended[n] = ended[n] || end
		}
	}
	attempts := make([]Attempt, 0, len(ended))
	for _, n := range slices.Sorted(maps.Keys(ended)) {
		a, err := readAttempt(ctx, s, keys, trial, n, ended[n])
		if err != nil {
			return nil, fmt.Errorf("attempt %d of trial %s: %w", n, trial, err)
		}
		attempts = append(attempts, a)
	}
	return attempts, nil
}

func readAttempt(ctx context.Context, s Store, keys Keys, trial string, n int, ended bool) (Attempt, error) {
	var a Attempt
	if ended {
		end, err := ReadRecord[AttemptEnd](ctx, s, keys.AttemptEnd(trial, n))
		switch {
		case err == nil:
			a.End = &end
		case !errors.Is(err, ErrNotFound): // gone since it was listed
			return Attempt{}, err
		}
	}
	claim, err := ReadRecord[Claim](ctx, s, keys.Claim(trial, n))
	if errors.Is(err, ErrNotFound) {
		// Somebody removed it. The number stays taken, for its files may be there.
		a.Claim = Claim{TrialID: trial, Attempt: n}
		if a.End != nil {
			a.Claim.Epoch = a.End.Epoch
		}
		return a, nil
	}
	a.Claim = claim
	return a, err
}

// parseAttemptName reads "<n>.json" and "<n>.end.json".
func parseAttemptName(name string) (n int, end, ok bool) {
	num, found := strings.CutSuffix(name, ".json")
	if !found {
		return 0, false, false
	}
	num, end = strings.CutSuffix(num, ".end")
	n, err := strconv.Atoi(num)
	return n, end, err == nil && n > 0 && strconv.Itoa(n) == num
}

// ClaimAttempt takes the next free number for an attempt and returns the claim with
// it, and the attempts that were there before. claim.Attempt is ignored.
//
// The nonce makes it safe to repeat: a call whose claim is already there, because an
// earlier answer was lost, gets that claim. So every attempt needs a new nonce.
func ClaimAttempt(ctx context.Context, s Store, keys Keys, claim Claim) (Claim, []Attempt, error) {
	before, err := ListAttempts(ctx, s, keys, claim.TrialID)
	if err != nil {
		return Claim{}, nil, err
	}
	return ClaimAfter(ctx, s, keys, claim, before)
}

// ClaimAfter is [ClaimAttempt] for a caller who has listed the attempts already. A list
// that is out of date costs another one, and nothing else.
func ClaimAfter(ctx context.Context, s Store, keys Keys, claim Claim, before []Attempt) (Claim, []Attempt, error) {
	if claim.Nonce == "" {
		return Claim{}, nil, fmt.Errorf("claim of trial %s: a nonce is needed", claim.TrialID)
	}
	claim.SchemaVersion = cmp.Or(claim.SchemaVersion, SchemaVersion)
	claim.At = claim.At.UTC()
	for {
		claim.Attempt = 1
		for i, a := range before {
			claim.Attempt = a.Claim.Attempt + 1
			if a.Claim.Nonce != claim.Nonce {
				continue
			}
			if a.End != nil {
				return Claim{}, nil, fmt.Errorf("claim of trial %s: the nonce is that of attempt %d, which has ended", claim.TrialID, a.Claim.Attempt)
			}
			return a.Claim, slices.Delete(before, i, i+1), nil
		}
		key := keys.Claim(claim.TrialID, claim.Attempt)
		err := CreateRecord(ctx, s, key, claim)
		if err == nil {
			return claim, before, nil
		}
		// Taken, by somebody else or by us with the answer lost. After any other
		// error the claim may be there too.
		there, readErr := ReadRecord[Claim](ctx, s, key)
		switch {
		case readErr == nil && there.Nonce == claim.Nonce:
			return there, before, nil
		case !errors.Is(err, ErrExists):
			return Claim{}, nil, fmt.Errorf("claim attempt %d of trial %s: %w", claim.Attempt, claim.TrialID, err)
		case readErr != nil && !errors.Is(readErr, ErrNotFound):
			return Claim{}, nil, fmt.Errorf("claim attempt %d of trial %s: %w", claim.Attempt, claim.TrialID, readErr)
		}
		if err := ctx.Err(); err != nil {
			return Claim{}, nil, fmt.Errorf("claim of trial %s: %w", claim.TrialID, err)
		}
		if before, err = ListAttempts(ctx, s, keys, claim.TrialID); err != nil {
			return Claim{}, nil, err
		}
	}
}

// EndAttempt records how an attempt ended. Where an end is already recorded, that one
// stands, and it is no error.
func EndAttempt(ctx context.Context, s Store, keys Keys, trial string, end AttemptEnd) error {
	end.SchemaVersion = cmp.Or(end.SchemaVersion, SchemaVersion)
	end.At = end.At.UTC()
	err := CreateRecord(ctx, s, keys.AttemptEnd(trial, end.Attempt), end)
	if err == nil || errors.Is(err, ErrExists) {
		return nil
	}
	return fmt.Errorf("end attempt %d of trial %s: %w", end.Attempt, trial, err)
}

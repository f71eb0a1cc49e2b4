// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

const (
	selfTestPrefix  = "selftest/"
	selfTestRacers  = 32
	selfTestRounds  = 3 // when nobody won because an answer was lost
	selfTestCleanup = 10 * time.Second
)

// SelfTest lets 32 writers race for one throw-away key. It returns [ErrNotAtomic]
// unless exactly one wins and the object is the winner's: on such a store a trial
// could count twice. Run it on every store that is opened for writing.
func SelfTest(ctx context.Context, s Store) error {
	for range selfTestRounds {
		winners, err := selfTestRound(ctx, s)
		switch {
		case err != nil:
			return fmt.Errorf("self-test of store %s: %w", s.URL(), err)
		case winners == 1:
			return nil
		case winners > 1:
			return fmt.Errorf("self-test of store %s: %d of %d writers created one key: %w", s.URL(), winners, selfTestRacers, ErrNotAtomic)
		}
	}
	return fmt.Errorf("self-test of store %s: none of %d writers could create a new key: %w", s.URL(), selfTestRacers, ErrNotAtomic)
}

func selfTestRound(ctx context.Context, s Store) (winners int, err error) {
	key := selfTestPrefix + NewNonce()
	defer func() {
		// The caller may have given up; the key should go all the same.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), selfTestCleanup)
		defer cancel()
		if e := s.Delete(ctx, key); err == nil && e != nil {
			err = fmt.Errorf("delete %s: %w", key, e)
		}
	}()
	results := raceCreate(ctx, s, key)
	winner := -1
	for i, e := range results {
		switch {
		case e == nil:
			winners++
			winner = i
		case !errors.Is(e, ErrExists) && err == nil:
			err = e // one for all: a store that is out of reach says so 32 times
		}
	}
	if winners > 1 {
		return winners, nil // worse than any error
	}
	if err != nil || winners == 0 {
		return winners, err
	}
	body, err := ReadObject(ctx, s, key, maxRecord)
	if err != nil {
		return 0, err
	}
	if string(body) != strconv.Itoa(winner) {
		return 0, fmt.Errorf("a writer that was refused replaced the winner's object: %w", ErrNotAtomic)
	}
	return 1, nil
}

// raceCreate starts all racers at one signal and returns what each was told.
func raceCreate(ctx context.Context, s Store, key string) []error {
	results := make([]error, selfTestRacers)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			<-start
			_, results[i] = s.Create(ctx, key, []byte(strconv.Itoa(i)))
		})
	}
	close(start)
	wg.Wait()
	return results
}

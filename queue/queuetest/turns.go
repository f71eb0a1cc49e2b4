// SPDX-License-Identifier: Apache-2.0

package queuetest

import (
	"github.com/tidemill/tidemill/queue"
)

func smallBehindLarge(s *suite) {
	s.open("large")
	s.open("small")
	s.publish("large", jobs("l", 1500)...)
	for range 5 {
		s.done(s.lease())
	}
	s.publish("small", jobs("s", 10)...)
	large, small := 0, 0
	for small < 10 {
		l := s.lease()
		if l.Job().Run == "small" {
			small++
		} else {
			large++
		}
		s.done(l)
		if bound := s.TurnLag + 2*small + 1; large > bound {
			s.Fatalf("%d jobs of the large run came before number %d of the small one, want %d at most", large, small+1, bound)
		}
	}
}

func priorityWeighs(s *suite) {
	for id, p := range map[string]queue.Priority{"low": queue.Low, "normal": queue.Normal, "high": queue.High} {
		s.open(id, func(r *queue.Run) { r.Priority = p })
		s.publish(id, jobs("t", 150)...)
	}
	turns := map[string]int{}
	for range 5 * (1 + 4 + 16) {
		l := s.lease()
		turns[l.Job().Run]++
		s.done(l)
	}
	if turns["low"] == 0 || turns["low"] >= turns["normal"] || turns["normal"] >= turns["high"] {
		s.Fatalf("turns %v, want some for each and more for the higher priority", turns)
	}
}

// priorityChanges wants a change of priority to count from the next turns on.
func priorityChanges(s *suite) {
	s.open("one", func(r *queue.Run) { r.Priority = queue.Low })
	s.open("two", func(r *queue.Run) { r.Priority = queue.High })
	s.publish("one", jobs("t", 150)...)
	s.publish("two", jobs("t", 150)...)
	count := func() map[string]int {
		turns := map[string]int{}
		for range 3 * (1 + 16) {
			l := s.lease()
			turns[l.Job().Run]++
			s.done(l)
		}
		return turns
	}
	if before := count(); before["one"] >= before["two"] {
		s.Fatalf("turns %v, want more for the run of the higher priority", before)
	}
	s.open("one", func(r *queue.Run) { r.Priority = queue.High })
	s.open("two", func(r *queue.Run) { r.Priority = queue.Low })
	s.eventually("the turns follow the changed priorities", func() bool {
		after := count()
		return after["one"] > after["two"]
	})
}

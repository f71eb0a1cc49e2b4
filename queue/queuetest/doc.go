// SPDX-License-Identifier: Apache-2.0

// Package queuetest is the test that every implementation of the queue contract
// has to pass.
//
// An implementation calls [Run] with a function that gives a fresh broker for
// each topic:
//
//	func TestConformance(t *testing.T) {
//		queuetest.Run(t, func(t *testing.T) *queuetest.Harness {
//			broker := newBroker(t, leaseTTL)
//			return &queuetest.Harness{Queue: broker.open(t), Open: broker.open, TTL: leaseTTL}
//		})
//	}
//
// Weaker brokers say what they tolerate in the fields of [Harness]; no topic is
// skipped. No topic asserts that something is fast: it waits for what must come
// with a bound that only a broken implementation meets, and what must not come is
// watched for a while ([Harness.Quiet]).
package queuetest

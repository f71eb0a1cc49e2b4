// SPDX-License-Identifier: Apache-2.0

// Package s3store keeps a store of bundles in a bucket of S3, or of another service that
// speaks its protocol.
//
// A key is an object's name below the store's prefix. Segments of more than 200 bytes are
// spelled as [bundle.LocalPath] has it, because many compatible services keep objects as
// files: so a copy of the bucket on a disk is a local store.
//
// # How a write becomes an object
//
// To create, an object is put with If-None-Match: the service decides who was first. To
// swap, it is put with If-Match. A service that ignores the first is found out when the
// store is opened for writing ([bundle.SelfTest]), one that ignores the second before
// the first swap.
//
// What is larger than a part is uploaded in parts, which become an object all at once,
// or are thrown away. A crash leaves parts that nobody sees and somebody pays for; a
// lifecycle rule of the bucket should remove them.
//
// # Versions and lost answers
//
// The entity tag of an object is often a hash of its bytes, and the same bytes come back.
// So every write has a nonce, which is stored with the object as metadata, and a version
// is the tag with the nonce. A swap looks whether the nonce is still there before it puts
// on condition of the tag. Only where others write, between the two, the very bytes that
// were there before, could it succeed against the letter of the contract.
//
// The nonce also tells our own write from another's: when an answer was lost, the request
// was repeated and the repetition was refused, then the object that is there is ours if
// it has our nonce.
//
// # How long a call takes
//
// Each attempt of a request has a deadline, which grows with what it carries, and each
// call has one for all attempts. A body that is being read must give something every
// now and then, else it is asked for again from where it stopped. Retries draw on a
// budget that all calls share, so that an outage ends in [bundle.ErrUnavailable] soon,
// whose callers wait longer than a call may.
package s3store

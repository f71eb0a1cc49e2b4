// SPDX-License-Identifier: Apache-2.0

// Package netcheck finds out whether an engine does what network policies rest on. It
// makes containers as trials have them, tries from inside to reach what no trial may
// reach, and says which policies hold. It takes a second or two; callers keep the
// result.
//
// # Boxes
//
// Three containers from an image that holds our tool alone (see boxtool): one without a
// network, as trials under no_internet are; one on a plain bridge network, as under
// full_internet; and beside that a neighbour that listens. The box on the bridge is the
// positive control: it must reach the neighbour by the very probe that must fail
// without a network, and find its name. Then it is taken off the network, which is what
// happens when a trial's next phase has no internet, and must be as closed as the first.
//
// # Proof
//
// A probe that fails says something only if it could have succeeded. Some answers are
// proof by themselves: the kernel of the box said that there is no way (network
// unreachable) or no permission, without sending anything. Silence is proof only for what the control
// reached. A refusal is an answer of the other side, so something was reached. What is neither reached
// nor shown to be closed counts as not held: the policy is then missing from what the
// runtime offers, with the reason in a sentence.
package netcheck

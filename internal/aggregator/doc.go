// SPDX-License-Identifier: Apache-2.0

// Package aggregator reads what a run left in its store and writes the reports:
// aggregate.json and its companions.
//
// It needs the store and nothing else, so it can run at any time and as often as
// people like: of a run that is still going it tells what there is so far. It walks
// the plan, gets the commit of each trial, many at a time, and gives them to package
// report in plan order. The same commits give the same bytes.
//
// A commit that can't be read, or that a newer version wrote, is reported, counted as
// missing, and makes the run incomplete. A store that doesn't answer is an error: to
// count its silence as missing trials would be a lie.
package aggregator

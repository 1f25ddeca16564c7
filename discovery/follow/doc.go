// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package follow keeps an answer of a registry current for as long as lookups ask for it.
//
// It is for the author of a [discovery.Discovery] over a registry that tells of changes,
// by watches or by blocking queries. A [Source] is one conversation with the registry; a
// [Set] holds the conversation, begins it anew when it fails, and answers from what the
// source told last:
//
//	set := follow.New(follow.DefaultLimits(), func(ctx context.Context, service string, tell func(Nodes)) error {
//		...                  // List the nodes, tell them, wait for a change, and so on.
//	})
//	defer set.Close()
//	nodes, err := set.Latest(ctx, "bank")
//
// What becomes of a key:
//
//	Latest --> trying --told--> current --told--> current ...
//	             ^  |              |
//	             |  +----fails-----+--> paused --> trying ...
//	             |                        |
//	   asked for the first time           +--> Latest returns the error at once
//
// # Lifecycle and concurrency
//
// Each key has a goroutine from the first question until no question has come for a while,
// until more keys are asked for than the set may hold, or until Close, which waits for
// all goroutines. All methods are safe for concurrent use.
//
// # Guarantees
//
//   - An answer comes from a conversation that has not failed since. While the
//     registry cannot be reached there is an error, and never an older answer.
//   - The pause between two conversations that fail grows from one bound to another,
//     and no question shortens it.
//   - The number of keys is bounded.
//
// # Non-guarantees
//
// While a source does not notice that its registry has gone, the answer stays as it was: the
// source has to bound that time.
package follow

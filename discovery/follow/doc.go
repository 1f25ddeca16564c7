// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package follow keeps what a registry says as long as somebody asks for it.
//
// It is for those who write a [discovery.Discovery] over a registry that tells of
// changes, such as one with watches or blocking queries. A [Source] is one
// conversation with the registry; a [Set] holds it, begins it anew when it fails, and
// answers from what was told last:
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
// Each key has a goroutine from the first question until nobody has asked for a while,
// until more keys are asked for than the set may hold, or until Close, which waits for
// all of them. All methods are safe for concurrent use.
//
// # Guarantees
//
//   - An answer is what a conversation told that has not failed since. While the
//     registry cannot be reached there is an error, and never an older answer.
//   - The pause between two conversations that fail grows from one bound to another,
//     and nobody who asks shortens it.
//   - The number of keys is bounded.
//
// # Non-guarantees
//
// A source that does not notice that its registry has gone leaves the answer as it was:
// how long that takes is for the source to bound.
package follow

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package remembered remembers entities in the replicated data of the cluster (package ddata), without a database.
//
//	node, err := cluster.Start(ctx, cluster.WithFile("node.yaml"), cluster.WithStore(durable.OpenIn))
//	ids, err := remembered.In(node, remembered.Default())
//	region, err := sharding.Start(node, sharding.Kind[*pb.Command]{Name: "meter", Remember: ids, ...})
//
// Every replica has all ids in memory, some 100 bytes for each, and a change goes to all replicas. That is right for
// some ten thousand entities; for millions use package sharding/state/shardlog.
//
// # What survives
//
// What a majority of the replicas holds. A restart of the whole cluster only if the keys are durable:
//
//	ddata:
//	  durable: ["remembered/*"]
//
// A set is full, and takes no more ids, when one of its keys has but a sixteenth left of ddata.max-value-bytes: it has
// room to change hands then.
//
// # How owners are told apart
//
// The ids of a shard are spread over several keys, each a map from owner to set: who hosts the shard writes the set of
// its own epoch, and the set of the highest epoch is what counts. To open it is to claim it first, then to copy what
// the owner before has left, and to remove that. An owner looks at a majority after each change: with a claim there, or
// a later owner, the change is not confirmed, and without, it is read by whoever claims the set. What an earlier owner
// writes afterwards is in a set that nobody reads.
//
//	remembered/meter/1000/17/3 = { owner of epoch 4: {a, b} }
//	  ──Open, epoch 5──>         { owner of epoch 4: {a, b}, claim of epoch 5 }  ──>  { owner of epoch 5: {a, b} }
//
// # Lifecycle and concurrency
//
// [In] returns a [Store], which has nothing to close and starts no goroutine that outlives a call. It is safe for
// concurrent use.
package remembered

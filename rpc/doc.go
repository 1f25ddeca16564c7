// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package rpc has what typed clients of entities, and the entities behind them, have in
// common: the call and the reply as they travel, and the two small interfaces on which the
// code stands that protoc-gen-quorate generates from the services of a .proto file.
//
//	//go:generate protoc --go_out=. --quorate_out=. bank.proto
//
//	service Accounts {
//	  rpc Deposit(DepositRequest) returns (Balance);
//	  rpc Note(NoteRequest) returns (google.protobuf.Empty); // One-way: told, not asked.
//	}
//
// becomes, in the package bankquorate beside the messages,
//
//	accounts := bankquorate.NewAccounts(caller)
//	balance, err := accounts.Deposit(ctx, "acct-42", &bank.DepositRequest{Amount: 5})
//
// Where the caller leads is not known to the generated code: it is that of a member
// (package typed of the module sharding) or that of a client that is no member (module client).
//
// # The other side
//
// An entity implements the generated AccountsEntity, with one method for each rpc. What the
// methods are given beside the message is a type parameter: *sharding.Context for an entity
// of sharding, *state.Context[T] for one whose state is saved. [Service] finds the method of a
// [Call].
//
// # How calls travel
//
// All calls of a service travel in one type of messages, that of the kind: a [Call] has the name of
// the method and the message. The encoding is quorate/rpc/v1/rpc.proto (package proto), so that programs
// without generated code can call too. A method that the entity does not know is a [Fault] for
// whoever asked ([ErrUnknownMethod]), and nothing happens to the entity: services may grow while
// old and new programs run beside each other.
//
// # Refusals and failures
//
// A method that returns a [Fault] has refused the call, and its entity is well. Whoever asked gets
// the fault as the error. A refusal says that nothing was changed: whoever runs the entity drops what the call has
// ordered before the fault leaves (package typed of sharding). What the method did to memory of the entity's own only
// the method can undo. Any other error of a method means that the entity is not usable
// any more, as for plain entities.
//
// # Concurrency
//
// Callers and clients may be used from any goroutine. Values of [Call] and [Reply] are not changed
// once they were sent.
package rpc

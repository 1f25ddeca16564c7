// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/rpc"
)

// table is a caller to entities in a map; real callers are those of packages typed and client.
type table map[string]*entity

func (t table) Ask(_ context.Context, id string, call *rpc.Call) (*rpc.Reply, error) {
	return service().Handle(t[id], "", call)
}

func (t table) Tell(_ context.Context, id string, call *rpc.Call) error {
	_, err := service().Handle(t[id], "", call)
	return err
}

// What generated code does: it asks by a caller, and the service finds the method of the entity.
func Example() {
	caller := table{"greeter": new(entity)}
	reply, err := rpc.Ask[wrapperspb.StringValue](context.Background(), caller, "greeter", "Echo", wrapperspb.String("good morning"))
	fmt.Println(reply.GetValue(), err)
	_, err = rpc.Ask[wrapperspb.StringValue](context.Background(), caller, "greeter", "Sing", wrapperspb.String("good night"))
	fmt.Println(err)
	// Output:
	// good morning <nil>
	// refused: quorate.unknown-method: test.Echo has no method "Sing" here
}

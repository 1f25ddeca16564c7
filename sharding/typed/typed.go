// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package typed

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/quorate/quorate/rpc"
	"github.com/quorate/quorate/sharding"
)

// Kind returns the kind of the entities of a service, which the caller may change as it likes, but
// for New and Codec. Create returns the entity of c.ID(), and must not block; it may be nil on a node that
// hosts none, and ProxyOnly is set then.
func Kind[E any](name string, service rpc.Service[E, *sharding.Context], create func(c *sharding.Context) E) sharding.Kind[*rpc.Call] {
	k := sharding.Kind[*rpc.Call]{Name: name, Codec: Codec(service), ProxyOnly: create == nil}
	if create != nil {
		checker := sharding.EntityChecker(reflect.TypeFor[E]())
		k.New = func(c *sharding.Context) sharding.Entity[*rpc.Call] { return wrap(service, create(c), checker) }
	}
	return k
}

// replier is what a context can do that is given to methods.
type replier interface{ Reply(message any) error }

// Receive returns the function by which an entity handles calls, for what makes entities of
// functions, such as state.Snapshots. The codec of the kind is [Codec] then.
func Receive[E any, C replier](service rpc.Service[E, C], entity E) func(c C, call *rpc.Call) error {
	return func(c C, call *rpc.Call) error {
		reply, err := service.Handle(entity, c, call)
		switch {
		case err != nil || reply == nil:
			return err
		case reply.Fault != nil:
			return sharding.Refuse(reply)
		default:
			return c.Reply(reply)
		}
	}
}

// Caller leads typed clients to the entities of a region.
func Caller(region *sharding.Region[*rpc.Call]) rpc.Caller { return caller{region} }

type caller struct{ region *sharding.Region[*rpc.Call] }

// Ask implements [rpc.Caller].
func (c caller) Ask(ctx context.Context, id string, call *rpc.Call) (*rpc.Reply, error) {
	return sharding.Ask[*rpc.Reply](ctx, c.region, id, call)
}

// Tell implements [rpc.Caller].
func (c caller) Tell(ctx context.Context, id string, call *rpc.Call) error {
	return c.region.Tell(ctx, id, call)
}

// Codec returns the codec of the kind of a service, which has its name: nodes that run the kind with
// another service are refused by the coordinator.
func Codec[E, C any](service rpc.Service[E, C]) sharding.Codec {
	c := codec{service: service.Name(), methods: map[string]string{}, decode: service.Decode}
	for _, m := range service.Methods() {
		c.methods[m] = c.service + "/" + m
	}
	return c
}

// codec encodes calls and replies as quorate/rpc/v1/rpc.proto says.
type codec struct {
	service string
	methods map[string]string // Full names, by the names within the service. Never changes.
	decode  func([]byte) (rpc.Call, error)
}

var _ sharding.MethodCodec = codec{}

// Name has the name of the service.
func (c codec) Name() string { return "rpc " + c.service }

// Methods returns the full names of the methods of the service.
func (c codec) Methods() []string { return slices.Sorted(maps.Values(c.methods)) }

// MethodOf returns the full name of the method of a call.
func (c codec) MethodOf(message any) string {
	call, ok := message.(*rpc.Call)
	if !ok {
		return ""
	}
	if full, known := c.methods[call.Method]; known {
		return full
	}
	return c.service + "/" + call.Method
}

// Check fails for what is no call.
func (codec) Check(message any) error {
	if _, ok := message.(*rpc.Call); !ok {
		return notACall(message)
	}
	return nil
}

// Append appends the encoding.
func (codec) Append(dst []byte, message any) ([]byte, error) {
	switch m := message.(type) {
	case *rpc.Call:
		return m.Append(dst)
	case *rpc.Reply:
		return m.Append(dst)
	default:
		return dst, notACall(message)
	}
}

// Decode decodes b.
func (c codec) Decode(b []byte, message any) (err error) {
	switch m := message.(type) {
	case *rpc.Call:
		*m, err = c.decode(b)
		return err
	case *rpc.Reply:
		return m.Decode(b)
	default:
		return notACall(message)
	}
}

func notACall(message any) error {
	return fmt.Errorf("typed: a %T is neither a *rpc.Call nor a *rpc.Reply", message)
}

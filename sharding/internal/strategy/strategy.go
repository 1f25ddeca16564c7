// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package strategy has the allocation strategy that a node asks for homes and moves of shards: one of those that are
// built in, or one that the program gives, such as a plugin. With least-shard, which decides in the control machine,
// nobody is asked.
package strategy

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/optional"
)

// Chosen is the strategy in use. It is not changed, and safe for concurrent use as far as the strategy is.
type Chosen struct {
	name    string
	asked   allocation.Strategy // Nil: nobody is asked.
	builtIn bool                // It was made from the configuration, and is made anew with it.
}

// Given returns a strategy of the program under a name; of nil, which gives none, nobody is asked.
func Given(name string, s allocation.Strategy) *Chosen { return &Chosen{name: name, asked: s} }

// BuiltIn returns the built-in strategy that a configuration names; the error of another name wraps
// [allocation.ErrUnknownStrategy].
func BuiltIn(cfg allocation.Config) (*Chosen, error) {
	c := &Chosen{name: cfg.Strategy, builtIn: true}
	if cfg.Strategy == allocation.LeastShardName {
		return c, nil
	}
	var err error
	if c.asked, err = allocation.New(cfg); errors.Is(err, allocation.ErrUnknownStrategy) {
		err = &field.Error{Key: "sharding.allocation.strategy", Err: err, Reason: fmt.Sprintf(
			"%q is neither built in (%s) nor the name of a plugin, and the program gives none by WithAllocation: write the name of one that there is, or add a plugin to the section plugins",
			cfg.Strategy, strings.Join(allocation.BuiltIns(), ", "))}
	}
	return c, err
}

// IsGiven reports whether the program gives a strategy; of nil it does not.
func (c *Chosen) IsGiven() bool { return c != nil && c.asked != nil && !c.builtIn }

// Check reports a method of the strategy that would never be called.
func (c *Chosen) Check() error {
	if err := optional.Check(c.asked, nil, reflect.TypeFor[allocation.Classed]()); err != nil {
		return fmt.Errorf("allocation strategy: %w", err)
	}
	return nil
}

// With returns the strategy under other settings of the same name: one that is built in is made from them.
func (c *Chosen) With(cfg allocation.Config) (*Chosen, error) {
	if !c.builtIn {
		return c, nil
	}
	return BuiltIn(cfg)
}

// Name is that for the control machine, empty if nobody is asked.
func (c *Chosen) Name() string {
	if c.asked == nil {
		return ""
	}
	return c.name
}

// errReplaced answers a question to a strategy that was in use when the question was put, and is not when it is asked,
// since the control machine decides by itself now, with which it goes on.
var errReplaced = errors.New("another strategy has taken its place")

// Ask has the strategy answer a call of the control machine. It takes as long as the strategy does.
func (c *Chosen) Ask(ctx context.Context, call machine.Call) (any, error) {
	switch request := call.Request.(type) {
	case allocation.AllocateRequest:
		if c.asked == nil {
			return allocation.AllocateResult{}, errReplaced
		}
		return c.asked.Allocate(ctx, request)
	case allocation.RebalanceRequest:
		if c.asked == nil {
			return allocation.RebalanceResult{}, errReplaced
		}
		return c.asked.Rebalance(ctx, request)
	default:
		return nil, fmt.Errorf("sharding: call of kind %q with a %T", call.Port, call.Request)
	}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/allocation"

	"github.com/quorate/quorate/config/field"
)

// chooses reports whether the configuration chooses a plugin for something.
func (c Config) chooses(name string) bool {
	_, plugin := c.Plugins[name]
	for _, u := range c.uses() {
		if plugin && u.name == name {
			return true
		}
	}
	return false
}

// askedTimeout is how long an allocation strategy that another has replaced may still have a
// question in hand: sharding asks none longer.
const askedTimeout = 5 * time.Second

// openAllocation starts the plugin that the configuration names for allocation and the one
// before did not. The strategy is nil if it is built in. When the change is committed, the plugin
// before is ended, after the answer to the question that it may have in hand.
func (s *strategies) openAllocation(ctx context.Context, from, to configuration) (allocation.Strategy, Prepared, error) {
	before, name := from.Sharding.Allocation.Strategy, to.Sharding.Allocation.Strategy
	section, ok := to.Plugins[name]
	if slices.Contains(allocation.BuiltIns(), name) {
		return nil, Prepared{Commit: func() { s.replace(before, name, nil) }, Discard: func() {}}, nil
	}
	if !ok {
		return nil, Prepared{}, field.Errorf("sharding.allocation.strategy", "%q is neither built in (%s) nor the name of a plugin, and a strategy of the program itself is chosen when the node starts: restart the node", name, strings.Join(allocationNames(), ", "))
	}
	plugin, err := s.open(ctx, name, section, s.log, s.metrics.observe)
	if err != nil {
		return nil, Prepared{}, fmt.Errorf("cluster: %w", err)
	}
	strategy, err := plugin.Allocation()
	if err != nil {
		s.discard(plugin)
		return nil, Prepared{}, err
	}
	return strategy, Prepared{Commit: func() { s.replace(before, name, plugin) }, Discard: func() { s.discard(plugin) }}, nil
}

// prepareFollowing has sharding follow the map of locations, with limits that may have changed.
func prepareFollowing(n *Node, from, to configuration) (Prepared, error) {
	strategy, err := follow(n, to.Sharding.Allocation.External)
	if err != nil {
		return Prepared{}, err
	}
	before := from.Sharding.Allocation.Strategy
	return Prepared{Commit: func() {
		warnOfLocations(n.plugins.log, to.Config)
		n.follows.Store(true)
		_ = n.sharding.ReloadAllocation(to.Sharding, strategy) // The section was checked, so this fails only when the node has ended.
		n.plugins.replace(before, to.Sharding.Allocation.Strategy, nil)
	}}, nil
}

// replace puts a plugin, if it is one, in the place of the one before, if that is one.
func (s *strategies) replace(before, name string, plugin Plugin) {
	s.mu.Lock()
	old := s.swapped[before]
	delete(s.swapped, before)
	if plugin != nil {
		s.swapped[name] = plugin
	}
	s.mu.Unlock()
	if old == nil {
		return
	}
	s.workers.Go(func() { // Ends within askedTimeout and closeTimeout; end waits for it.
		select {
		case <-time.After(askedTimeout):
		case <-s.ending:
		}
		s.close(old)
	})
}

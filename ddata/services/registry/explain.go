// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/gossip"
)

// Explanation says what is known of a name, and why an entry is not found.
type Explanation struct {
	Name    string            `json:"name"`
	Data    ddata.Explanation `json:"data"`              // Where the entries of the name are kept.
	Entries []ExplainedEntry  `json:"entries,omitempty"` // All that are stored, ordered by node and number.
	// Malformed is how many entries are stored that mean nothing to this node.
	Malformed int `json:"malformed,omitempty"`
	// Subscribers is the number of subscriptions to the name on this node.
	Subscribers int `json:"subscribers"`
}

// ExplainedEntry is an entry that is stored, see [Entry].
type ExplainedEntry struct {
	Address  string            `json:"address"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Node     string            `json:"node"` // As [gossip.NodeID.String] writes it.
	ID       uint64            `json:"id"`
	Version  uint64            `json:"version"`
	// Hidden says why [Registry.Find] leaves the entry out; "" if it does not.
	Hidden string `json:"hidden,omitempty"`
}

// Explain says what is known of a name. Errors: as those of [Registry.Find].
func (r *Registry) Explain(ctx context.Context, name string) (Explanation, error) {
	e, err := Explain(ctx, r.data, name)
	if err != nil {
		return e, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Subscribers = len(r.subs[name])
	return e, nil
}

// Explain says what is known of a name on a node that need not have a registry. Errors: as
// those of [Registry.Find].
func Explain(ctx context.Context, h ddata.Host, name string) (Explanation, error) {
	if err := checkName(name); err != nil {
		return Explanation{}, err
	}
	c, err := contentOf(ctx, h.Data(), name)
	if err != nil {
		return Explanation{}, err
	}
	data, err := h.Data().Explain(ctx, Prefix+name)
	if err != nil {
		return Explanation{}, fmt.Errorf("registry: name %q: %w", name, err)
	}
	all, malformed := roll(name, c)
	e := Explanation{Name: name, Data: data, Malformed: malformed}
	state := h.Data().Node().State()
	for _, of := range all {
		e.Entries = append(e.Entries, ExplainedEntry{of.Address, of.Metadata, of.Node.String(), of.ID, of.Version, hidden(state, of.Node)})
	}
	return e, nil
}

// hidden says why the entries of a node are not found.
func hidden(state *gossip.State, node gossip.NodeID) string {
	m := state.Member(node)
	switch {
	case m != nil && m.Status == gossip.Down:
		return "its node is downed"
	case m != nil:
		return ""
	}
	if _, removed := state.Removed(node); removed {
		return "its node was removed from the cluster"
	}
	return "its node is no member of the cluster that this node knows of"
}

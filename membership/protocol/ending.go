// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/gossip"
)

// ending is what a node can say about its own end when it finds itself declared down:
// the state has only the fact.
type ending struct {
	news gossip.NodeID // Whose news was taken last.
	own  string        // Why this node declared itself down, if it did.
}

// heard notes whose news comes next.
func (e *ending) heard(from gossip.NodeID) { e.news = from }

// decided notes that this node declares itself down.
func (e *ending) decided(reason string) { e.own = reason }

// downed says by whom a node was declared down, and why, as far as can be known.
func (e *ending) downed(s *gossip.State, self gossip.NodeID) string {
	if e.own != "" {
		return "by itself: " + e.own
	}
	text := fmt.Sprintf("by the others, says %v", e.news)
	var accusers []string
	for _, by := range s.Observers(self) {
		accusers = append(accusers, by.String())
	}
	if len(accusers) == 0 {
		return text + "; nobody holds it for unreachable now"
	}
	return text + "; it was unreachable for " + strings.Join(accusers, ", ")
}

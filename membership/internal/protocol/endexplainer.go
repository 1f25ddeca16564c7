// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/gossip"
)

// endExplainer explains the end of a node that was declared down: by whom and why, as the
// state says, and from which node that news came.
type endExplainer struct {
	newsFrom gossip.NodeID // The node whose news was taken last.
}

// noteNewsFrom notes the sender of the news that is taken now.
func (e *endExplainer) noteNewsFrom(from gossip.NodeID) { e.newsFrom = from }

// downed says by whom and why a node was declared down that is still a member of the
// state.
func (e *endExplainer) downed(s *gossip.State, self gossip.NodeID) string {
	cause := causeOf(s, self)
	if cause.By == self {
		return "by itself: " + cause.Why
	}
	text := "by " + cause.String()
	if cause.IsZero() {
		text = fmt.Sprintf("by the others, says %v", e.newsFrom)
	}
	var accusers []string
	for _, by := range s.Observers(self) {
		accusers = append(accusers, by.String())
	}
	switch {
	case len(accusers) > 0:
		text += "; it was unreachable for " + strings.Join(accusers, ", ")
	case cause.IsZero():
		text += "; nobody holds it for unreachable now"
	}
	return text
}

// removed says why a node was declared down that has a tombstone in the state.
func (e *endExplainer) removed(s *gossip.State, self gossip.NodeID) string {
	cause := causeOf(s, self)
	if cause.IsZero() {
		return fmt.Sprintf("it was removed by the others, says %v", e.newsFrom)
	}
	return fmt.Sprintf("by %v; it was removed after that, says %v", cause, e.newsFrom)
}

// dismissed says why this node is no member any more, as a member has told it.
func (e *endExplainer) dismissed(from gossip.NodeID, msg NotMember) string {
	if msg.Downed.IsZero() {
		return fmt.Sprintf("it is %v, says %v", msg.Status, from)
	}
	return fmt.Sprintf("by %v; it is %v, says %v", msg.Downed, msg.Status, from)
}

// causeOf returns by whom and why a present or former member of s was declared down; none
// if it was not declared down, or if the state has no reason.
func causeOf(s *gossip.State, node gossip.NodeID) gossip.Cause {
	if member := s.Member(node); member != nil {
		return member.Downed
	}
	tomb, _ := s.Removed(node)
	return tomb.Downed
}

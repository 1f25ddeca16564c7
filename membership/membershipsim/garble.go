// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/simulation"
)

// GarbleDowning returns a function that makes up wrong answers of a downing strategy of a
// class. A wrong answer has another type, or unknown nodes, nodes that cannot be downed,
// too many nodes, doubled or unsorted ones, a verdict that does not exist or does not fit
// the nodes, a reason that is too long, or, where the class lets only majorities survive,
// keeps a side without a majority. Each breaks the contract of [downing.Check].
func GarbleDowning(class downing.Class) simulation.GarbageAnswer {
	return func(r *rand.Rand, request any) any {
		q, ok := request.(protocol.DowningRequest)
		if !ok {
			return "garbage"
		}
		v := q.View
		for {
			// A made-up answer may be right by chance: no node can be named twice if
			// there is no node to name.
			answer := garblers()[r.IntN(len(garblers()))](r, &v)
			if d, ok := answer.(downing.Decision); !ok || downing.Check(v, class, d) != nil {
				return answer
			}
		}
	}
}

// garblers returns one function for each sort of garbage.
func garblers() []func(r *rand.Rand, v *downing.View) any {
	return []func(r *rand.Rand, v *downing.View) any{
		func(*rand.Rand, *downing.View) any { return nil },
		func(*rand.Rand, *downing.View) any { return "keep-side" },
		func(r *rand.Rand, _ *downing.View) any { return r.IntN(10) },
		func(*rand.Rand, *downing.View) any { return downing.Decision{Verdict: 99} },
		func(*rand.Rand, *downing.View) any {
			return downing.Decision{Reason: strings.Repeat("because ", downing.MaxReason/8+1)}
		},
		func(r *rand.Rand, v *downing.View) any {
			unknown := gossip.NodeID{Address: v.Self.Address, UID: gossip.UID(r.Uint64() | 1)}
			return garbled(downing.KeepSide, append(lostOf(v), unknown))
		},
		func(_ *rand.Rand, v *downing.View) any {
			return garbled(downing.KeepSide, slices.Concat(lostOf(v), lostOf(v)))
		},
		func(_ *rand.Rand, v *downing.View) any { // Too many: all members, including those that are down already.
			return garbled(downing.KeepSide, allMembers(v))
		},
		func(_ *rand.Rand, v *downing.View) any { return garbled(downing.None, lostOf(v)) },
		func(_ *rand.Rand, v *downing.View) any { return garbled(downing.DownSide, lostOf(v)) },
		func(*rand.Rand, *downing.View) any { return garbled(downing.DownAll, nil) },
		func(_ *rand.Rand, v *downing.View) any { // The side of the asking node, right or wrong.
			return downing.Decision{Verdict: downing.KeepSide, Down: lostOf(v), Reason: "this side is the best"}
		},
		func(_ *rand.Rand, v *downing.View) any { // The asking node alone.
			d := downing.Decision{Verdict: downing.KeepSide, Reason: "nobody else is needed"}
			for _, m := range v.Members {
				if m.Node != v.Self && downing.CanBeDowned(m) {
					d.Down = append(d.Down, m.Node)
				}
			}
			return d
		},
	}
}

func garbled(verdict downing.Verdict, down []gossip.NodeID) downing.Decision {
	return downing.Decision{Verdict: verdict, Down: down, Reason: "garbage"}
}

func lostOf(v *downing.View) []gossip.NodeID { return nodesOf(v.Side().Lost()) }

func allMembers(v *downing.View) []gossip.NodeID { return nodesOf(v.Members) }

func nodesOf(members []*gossip.Member) []gossip.NodeID {
	nodes := make([]gossip.NodeID, 0, len(members))
	for _, m := range members {
		nodes = append(nodes, m.Node)
	}
	return nodes
}

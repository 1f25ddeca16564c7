// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Remembered entities after the number of shards has changed: each number of shards has sets of its own in the store,
// and the machines of package remembering, one of each region, take over what those of former numbers have. Control
// carries their questions and answers, and no further change begins before that is over: so the sets that it begins
// with are empty.
//
//	remembering ──ImportQuestion──> Control ──TakeOver──> Control of the exporter ──ToRemembering──> remembering
//	remembering <──ToRemembering── Control <──GivenOver── Control <──ImportAnswer── remembering

// ImportQuestion is the input that the remembering machine of a region has a question, and ImportAnswer that it has an
// answer for the region of a node.
type ImportQuestion struct {
	Kind string
	Take protocol.ExportRequest
}

// ImportAnswer is the counterpart of [ImportQuestion].
type ImportAnswer struct {
	Kind  string
	To    gossip.NodeID
	Given protocol.ExportReply
}

// TakenOver is the input that nothing is left of what was before a layout.
type TakenOver struct {
	Kind   string
	Layout uint16
}

// ToRemembering is an effect: hand Input to the remembering machine of the kind.
type ToRemembering struct {
	Kind  string
	Input protocol.RememberingInput
}

// TakeOver carries a question. It is not repeated: the machine that asked asks again.
type TakeOver struct {
	Kind string
	Take protocol.ExportRequest
}

// GivenOver carries an answer. It is not repeated.
type GivenOver struct {
	Kind  string
	Given protocol.ExportReply
}

// KindName returns the name of the kind.
func (m TakeOver) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m GivenOver) KindName() string { return m.Kind }

// takeover is what a region knows of the taking over.
type takeover struct {
	over bool   // Nothing is left of what was before a layout,
	than uint16 // which has this number.
}

// ask sends a question to the home of the first shard of the present layout, if it is known.
func (h *host) ask(t protocol.ExportRequest) {
	if home := h.homes.at(h.present().Shard(0)); !home.Node.IsZero() {
		h.kind.sendBulk(home.Node, TakeOver{Kind: h.cfg.Name, Take: t})
	}
}

// present returns the layout with the highest number that the region knows of.
func (h *host) present() protocol.Layout { return h.homes.layers[len(h.homes.layers)-1].Layout }

// takenOver notes that nothing is left of what was before a layout, and has the coordinator know.
func (h *host) takenOver(layout uint16) {
	h.takeover = takeover{true, layout}
	h.register()
}

// told returns what the region says of the taking over in its registration.
func (h *host) told() uint32 {
	switch {
	case !h.cfg.Remembers || h.cfg.Proxy:
		return 0
	case h.takeover.over && h.takeover.than == h.present().Number:
		return 2 + uint32(h.takeover.than)
	default:
		return 1
	}
}

// takesOver reports whether sets of former layouts may have ids of remembered entities: some region remembers its
// entities, and none has heard that nothing is left of what was before the present layout.
func (r *regions) takesOver(present protocol.Layout) (takes bool) {
	for _, reg := range r.registrations { //quorate:unordered a question about all
		if reg.Takeover == 2+uint32(present.Number) {
			return false
		}
		takes = takes || reg.Takeover > 0
	}
	return takes
}

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
//	remembering ──ImportQuestion──> Control ──ImportRequest──> Control of the exporter ──ToRemembering──> remembering
//	remembering <──ToRemembering── Control <──ImportReply── Control <──ImportAnswer── remembering

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

// ImportFinished is the input that nothing is left of what was before a layout.
type ImportFinished struct {
	Kind   string
	Layout uint16
}

// ToRemembering is an effect: hand Input to the remembering machine of the kind.
type ToRemembering struct {
	Kind  string
	Input protocol.RememberingInput
}

// ImportRequest carries a question. It is not repeated: the machine that asked asks again.
type ImportRequest struct {
	Kind string
	Take protocol.ExportRequest
}

// ImportReply carries an answer. It is not repeated.
type ImportReply struct {
	Kind  string
	Given protocol.ExportReply
}

// KindName returns the name of the kind.
func (m ImportRequest) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m ImportReply) KindName() string { return m.Kind }

// importState is how far the import has come, as a region knows.
type importState struct {
	done   bool   // Nothing is left of what was before the layout.
	layout uint16 // The number of a layout.
}

// ask sends a question to the home of the first shard of the present layout, if it is known.
func (h *host) ask(t protocol.ExportRequest) {
	if home := h.homes.at(h.present().Shard(0)); !home.Node.IsZero() {
		h.kind.sendBulk(home.Node, ImportRequest{Kind: h.cfg.Name, Take: t})
	}
}

// present returns the layout with the highest number that the region knows of.
func (h *host) present() protocol.Layout { return h.homes.parts[len(h.homes.parts)-1].Layout }

// importFinished notes that nothing is left of what was before a layout, and has the coordinator know.
func (h *host) importFinished(layout uint16) {
	h.imports = importState{true, layout}
	h.register()
}

// told returns what the region says of the taking over in its registration.
func (h *host) told() uint32 {
	switch {
	case !h.cfg.Remembers || h.cfg.Proxy:
		return 0
	case h.imports.done && h.imports.layout == h.present().Number:
		return 2 + uint32(h.imports.layout)
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

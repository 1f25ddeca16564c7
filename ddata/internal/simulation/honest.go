// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/machine"
)

// honest is a machine that is looked at while it sends: no message says of a generation that the
// replica has caught up with it which has not (D9). The leader ends a change by that word, and
// reads that ask the new set alone miss what the replica lacks.
type honest struct {
	*protocol.Machine
	cluster *Cluster
	has     map[chosenAt]bool // By generation, whether the replica had caught up after any step in it.
}

// Step handles an input. A message may leave long after the step in which it was written: it
// says what was the case then.
func (h *honest) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	before := len(out.Effects())
	h.Machine.Step(now, in, out)
	if r := h.Register(0); r != nil {
		at := chosenAt{r.Lineage, r.Gen}
		h.has[at] = h.has[at] || h.Caught(0)
	}
	for _, e := range out.Effects()[before:] {
		s, _ := e.(machine.Send)
		m, ok := s.Message.(protocol.Envelope)
		if has, was := h.has[chosenAt{m.Lineage, m.Gen}]; ok && m.Caught && was && !has {
			h.cluster.World.Fail(fmt.Errorf("D9: a %T to %s says that its sender has caught up with generation %d, which it has not", m.Body, s.To, m.Gen))
		}
	}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"fmt"
	"strings"
)

// describe writes a line for each record. Known are the members that have seen the state.
func (s *core) describe(b *strings.Builder, known bitset) {
	fmt.Fprintf(b, "cluster born=%d nonce=%x\n", s.cluster.value.Born, s.cluster.value.Nonce)
	fmt.Fprintf(b, "registers last-up=%d pruned-before=%d\n", s.lastUp.value, s.pruned.value)
	if s.epochs.value != 0 {
		fmt.Fprintf(b, "epochs born=%d\n", s.epochs.value)
	}
	if !s.yielded.value.IsZero() {
		fmt.Fprintf(b, "yielded to born=%d nonce=%x\n", s.yielded.value.To.Born, s.yielded.value.To.Nonce)
	}
	if !s.unknown.value.IsZero() {
		b.WriteString("registers")
		s.unknown.value.describe(b)
		b.WriteByte('\n')
	}
	for i, m := range s.members {
		m.describe(b)
		if known.has(i) {
			b.WriteString(" seen")
		}
		b.WriteByte('\n')
	}
	for _, t := range s.tombs {
		fmt.Fprintf(b, "removed %v last=%d at=%d", t.Node, t.Last, t.RemovedAt)
		t.Downed.describe(b)
		b.WriteByte('\n')
	}
	for _, set := range s.rows {
		fmt.Fprintf(b, "observer %v version=%d", set.Observer, set.Version)
		for _, row := range set.Rows {
			fmt.Fprintf(b, " %v=%v/%d", row.Subject, row.Status, row.Version)
		}
		b.WriteByte('\n')
	}
	if config := s.config.record; config != nil {
		fmt.Fprintf(b, "config gen=%d by=%x voters=%v previous=%v", config.Gen, config.By, config.Voters, config.Previous)
		if len(config.Data)+len(config.PreviousData) > 0 {
			fmt.Fprintf(b, " data=%x previous=%x", config.Data, config.PreviousData)
		}
		describeUnknown(b, config.Unknown)
		b.WriteByte('\n')
	}
	if d := s.downing.record; d != nil {
		fmt.Fprintf(b, "downing gen=%d name=%q version=%q parameters=%q pure=%t majority-only=%t",
			d.Gen, d.Name, d.Version, d.Parameters, d.Pure, d.MajorityOnly)
		describeUnknown(b, d.Unknown)
		b.WriteByte('\n')
		if d.Previous != (DowningStrategy{}) {
			fmt.Fprintf(b, "downing before name=%q version=%q parameters=%q pure=%t majority-only=%t\n",
				d.Previous.Name, d.Previous.Version, d.Previous.Parameters, d.Previous.Pure, d.Previous.MajorityOnly)
		}
	}
}

func (m *Member) describe(b *strings.Builder) {
	fmt.Fprintf(b, "member %v %v", m.Node, m.Status)
	if m.UpNumber > 0 {
		fmt.Fprintf(b, " up=%d", m.UpNumber)
	}
	if m.Zone != "" {
		fmt.Fprintf(b, " zone=%q", m.Zone)
	}
	if len(m.Roles) > 0 {
		fmt.Fprintf(b, " roles=%q", m.Roles)
	}
	if m.AppVersion != "" {
		fmt.Fprintf(b, " app=%q", m.AppVersion)
	}
	if m.Protocol != (ProtocolRange{}) {
		fmt.Fprintf(b, " protocol=%d-%d", m.Protocol.Min, m.Protocol.Max)
	}
	if len(m.Services) > 0 {
		fmt.Fprintf(b, " services=%d", m.Services)
	}
	if m.Settings != 0 {
		fmt.Fprintf(b, " settings=%x", m.Settings)
	}
	if m.Data != 0 {
		fmt.Fprintf(b, " data=%x", uint64(m.Data))
	}
	if m.Loaded.Version != 0 {
		fmt.Fprintf(b, " loaded/%d=%v", m.Loaded.Version, m.Loaded.Strategies)
	}
	m.Downed.describe(b)
	m.Unknown.describe(b)
}

func (c Cause) describe(b *strings.Builder) {
	if !c.IsZero() {
		fmt.Fprintf(b, " downed-by=%v why=%q", c.By, c.Why)
	}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocationpolicy

import (
	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/wire"
)

// ReasonsLeftOut stands in an answer for the reasons that exceed the sum allowed.
const ReasonsLeftOut = "no reason: those of this answer exceed 1 MiB"

// reasons are the column and the table of reasons of a message that is being written.
// Both are left out as long as every reason is empty.
type reasons struct {
	table  wire.Texts
	column []uint32
	bytes  int
}

// add notes the reason of element i of n.
func (t *reasons) add(reason string, i, n int) {
	reason = wire.Text(reason)
	if reason == "" && t.column == nil {
		return
	}
	if t.column == nil {
		t.column = make([]uint32, n)
		if i > 0 {
			t.table.Add("") // The empty reason of the elements before.
		}
	}
	if last, ok := t.table.Last(); !ok || reason != last {
		reason = t.admit(reason)
	}
	t.column[i] = t.table.Add(reason)
}

// admit returns the reason if it is in the table or fits into it, otherwise the text that
// stands for it.
func (t *reasons) admit(reason string) string {
	if t.table.Has(reason) {
		return reason
	}
	if t.bytes+len(reason) > plugins.MaxReasonsBytes-len(ReasonsLeftOut) {
		return ReasonsLeftOut
	}
	t.bytes += len(reason)
	return reason
}

// checkReasons checks the reasons of n elements that were received.
func checkReasons(n int, column []uint32, list []string) error {
	if len(list) > n {
		return wire.Malformed("reasons", "%d reasons for %d elements", len(list), n)
	}
	if len(column) > 0 {
		if err := wire.SameLength("reason", n, len(column)); err != nil {
			return err
		}
	}
	if err := wire.Within("reason", column, len(list)); err != nil {
		return err
	}
	sum := 0
	for i, reason := range list {
		if len(reason) > allocation.MaxReason {
			return wire.Malformed("reasons", "reason %d has %d bytes, the limit is %d", i, len(reason), allocation.MaxReason)
		}
		sum += len(reason)
	}
	if sum > plugins.MaxReasonsBytes {
		return wire.Malformed("reasons", "%d bytes in all, the limit is %d", sum, plugins.MaxReasonsBytes)
	}
	return nil
}

func reasonAt(i int, column []uint32, list []string) string {
	if len(column) == 0 {
		return ""
	}
	return list[column[i]]
}

// places maps regions to their indices. Answers often name the same region in a row, and
// few regions are searched faster than mapped.
type places struct {
	regions []allocation.RegionState
	at      map[allocation.Region]uint32
}

const maxScan = 8

func (p *places) of(id allocation.Region) (uint32, error) {
	if len(p.regions) <= maxScan {
		for i := range p.regions {
			if p.regions[i].ID == id {
				return uint32(i), nil
			}
		}
		return 0, wire.Malformed("region", "%.100q was not in the request", id)
	}
	if p.at == nil {
		p.at = newRegionTable(p.regions).at
	}
	place, ok := p.at[id]
	if !ok {
		return 0, wire.Malformed("region", "%.100q was not in the request", id)
	}
	return place, nil
}

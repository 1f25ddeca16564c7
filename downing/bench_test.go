// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing_test

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
)

// BenchmarkKeepMajority decides for a side that has lost a third of the members; up to
// 9 members complain about each lost one.
func BenchmarkKeepMajority(b *testing.B) {
	for _, n := range []int{5, 100, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) { benchmark(b, downing.KeepMajority{}, lossyView(n)) })
	}
}

// BenchmarkLostThird decides by each strategy for 1,000 members of which a third is lost.
func BenchmarkLostThird(b *testing.B) {
	for _, s := range strategies() {
		b.Run(s.name, func(b *testing.B) { benchmark(b, s.make(1000), lossyView(1000)) })
	}
}

// BenchmarkBrokenLinks decides by each strategy for a side of 1,000 members on which every
// member has the same number of broken links.
func BenchmarkBrokenLinks(b *testing.B) {
	for _, s := range strategies() {
		for _, links := range []int{2, 18} {
			b.Run(fmt.Sprintf("%s/links=%d", s.name, links), func(b *testing.B) { benchmark(b, s.make(1000), ringView(1000, links/2)) })
		}
	}
}

// benchmark decides about a view, of which all members but the last have the role.
func benchmark(b *testing.B, by downing.Immediate, v downing.View) {
	b.Helper()
	withCore(v.Members)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := by.DecideNow(v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	v := lossyView(1000)
	d, err := keepMajority.DecideNow(v)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := downing.Check(v, keepMajority.Class(), d); err != nil {
			b.Fatal(err)
		}
	}
}

// ringView is the view of n members that have all seen the state. Each member
// complains about some others, at equal distances around the ring of all members.
func ringView(n, complaints int) downing.View {
	members := downingtest.Members(n)
	ids := downingtest.IDs(members)
	v := downing.View{Members: members, Base: gossip.Base{ids}, Seen: ids, Self: ids[0]}
	for i := range ids {
		for k := 1; k <= complaints; k++ {
			v.Unreachable = append(v.Unreachable, downingtest.Complaint(ids[i], ids[(i+k*(n/20))%n]))
		}
	}
	return v
}

func lossyView(n int) downing.View {
	members := downingtest.Members(n)
	ids := downingtest.IDs(members)
	v := downing.View{Members: members, Base: gossip.Base{ids}}
	for i, id := range ids {
		if i%3 == 2 {
			for k := 1; k <= 9 && k < n; k++ {
				if o := (i + k) % n; o%3 != 2 {
					v.Unreachable = append(v.Unreachable, downingtest.Complaint(ids[o], id))
				}
			}
			continue
		}
		v.Seen = append(v.Seen, id)
	}
	v.Self = ids[0]
	return v
}

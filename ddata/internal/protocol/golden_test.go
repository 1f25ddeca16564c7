// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/machine/machinetest"
)

var rewrite = flag.Bool("rewrite", false, "write the golden traces anew")

// The golden traces show what the replicas of a small group send and decide, and when. Two
// runs give one trace, and a trace changes only with the behaviour: a person reads the
// difference.
// covers I30.
func TestGoldenTraces(t *testing.T) {
	majority := protocol.Level{Name: protocol.Majority}
	for name, scenario := range map[string]func(f *fleet){
		"write": func(f *fleet) {
			f.together()
			change := f.at(1).add(7)
			f.at(1).command(protocol.Write{Op: 1, Change: change, Level: majority, Limit: time.Second})
			f.at(2).command(protocol.Read{Op: 1, Key: "k", Level: majority, Limit: time.Second})
		},
		"repair": func(f *fleet) {
			f.together()
			f.at(1).add(7)
			f.at(1).command(protocol.Read{Op: 1, Key: "k", Level: majority, Limit: time.Second})
		},
		"join": func(f *fleet) {
			f.know(members(f.t, []int{1, 2}), 1, 2)
			f.run(2 * time.Second)
			f.at(1).add(7)
			f.at(1).command(protocol.SendDeltas{})
			f.run(500 * time.Millisecond)
			f.know(members(f.t, []int{1, 2, 3}), 1, 2, 3)
			f.run(1500 * time.Millisecond)
		},
		"sweep": func(f *fleet) {
			f.together()
			f.at(1).add(7)
			f.at(1).command(protocol.Delete{Op: 1, Key: "k", Level: majority, Limit: time.Second})
			f.drop = func(_, _ int, body any) bool { // Comparisons would hide the rest.
				switch body.(type) {
				case protocol.Compare, protocol.Groups:
					return true
				default:
					return false
				}
			}
			f.run(25 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			machinetest.Trace(t, filepath.Join("testdata", name+".txt"), *rewrite, func() string {
				f := newFleet(t, 3)
				f.trace = &strings.Builder{}
				scenario(f)
				for _, r := range f.nodes {
					f.trace.WriteString("\n" + r.String() + "\n")
				}
				return f.trace.String()
			})
		})
	}
}

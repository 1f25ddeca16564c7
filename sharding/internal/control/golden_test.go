// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/machinetest"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

var rewrite = flag.Bool("rewrite", false, "write the golden traces anew")

// The golden traces show what the nodes of a small cluster send and decide, and when. Two
// runs give one trace, and a trace changes only with the behaviour: a person reads the
// difference.
// covers I30.
func TestGoldenTraces(t *testing.T) {
	for name, scenario := range map[string]func(f *fleet){
		"start": func(f *fleet) { f.cluster(3, six()) },
		"leave": func(f *fleet) {
			nodes := f.cluster(3, six())
			f.set(gossip.Leaving, nodes[1])
			f.run(2 * time.Second)
		},
		"join": func(f *fleet) {
			f.cluster(2, six())
			f.start(3, six())
			f.run(time.Second)
		},
		"crash": func(f *fleet) {
			nodes := f.cluster(3, six())
			nodes[0].dead = true
			f.set(gossip.Down, nodes[0])
			f.run(time.Second)
			f.remove(nodes[0])
			f.run(time.Second)
			f.fence(nodes[0])
			f.run(2 * time.Second)
		},
		"stuck": func(f *fleet) {
			nodes := f.cluster(3, six())
			f.stops = func(protocol.ShardID) time.Duration { return -1 }
			f.set(gossip.Leaving, nodes[2])
			f.run(5 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			machinetest.Trace(t, filepath.Join("testdata", name+".txt"), *rewrite, func() string { return traceOf(t, scenario) })
		})
	}
}

func traceOf(t *testing.T, scenario func(*fleet)) string {
	t.Helper()
	f := newFleet(t)
	f.trace = &strings.Builder{}
	scenario(f)
	for _, id := range f.ids() {
		if n := f.nodes[id]; !n.dead {
			f.trace.WriteString("\n" + id.String() + "\n" + n.String())
		}
	}
	return f.trace.String()
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/machinetest"
	"github.com/quorate/quorate/membership/internal/protocol"
)

var rewrite = flag.Bool("rewrite", false, "write the golden traces anew")

// The traces show what the nodes of a small cluster decide, and when. They are
// read by people: a change of one is a change of behaviour. covers I30.
func TestGoldenTraces(t *testing.T) {
	for name, scenario := range map[string]func(l *loop){
		"join": func(l *loop) {
			for i := 1; i <= 3; i++ {
				l.start(i, gossip.UID(i)).step(protocol.Join{Seeds: []gossip.Address{address(1), address(2)}})
			}
			l.run(3 * time.Second)
		},
		"crash": func(l *loop) {
			nodes := l.cluster(3)
			nodes[0].dead = true
			l.run(15 * time.Second)
		},
		"leave": func(l *loop) {
			nodes := l.cluster(3)
			nodes[0].step(protocol.Leave{Address: address(1)})
			l.run(8 * time.Second)
		},
		"partition": func(l *loop) {
			l.cluster(5)
			l.cut = splitAtThree()
			l.run(15 * time.Second)
		},
		"restart": func(l *loop) {
			nodes := l.cluster(3)
			nodes[2].dead = true
			l.start(3, 33).step(protocol.Join{Seeds: []gossip.Address{address(1)}})
			l.run(8 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			machinetest.Trace(t, filepath.Join("testdata", name+".txt"), *rewrite, func() string { return traceOf(t, scenario) })
		})
	}
}

func traceOf(t *testing.T, scenario func(*loop)) string {
	t.Helper()
	l := newLoop(t)
	l.trace = &strings.Builder{}
	scenario(l)
	return l.trace.String() + "\n" + l.describe()
}

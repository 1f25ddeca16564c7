// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/bench/internal/program"
)

// whole is the program with everything that can be measured.
func whole() program.Program { return program.Program{Groups: Groups(), Servers: Servers()} }

// Names are unique, floors are measured before what stands on them, and there is something that measures.
func TestThePlanIsWhole(t *testing.T) {
	require.NoError(t, harness.Whole(Groups()))
}

// What Quorate does stands first on a floor, then on each of the other libraries, whose own messages are no failure.
func TestQuorateStandsBesideEachPeer(t *testing.T) {
	of := map[string]harness.Experiment{}
	for _, g := range Groups() {
		for _, e := range g.Experiments {
			for _, f := range e.Figures {
				of[g.Name+"/"+f.Name] = e
			}
		}
	}
	require.Equal(t, []string{"floor-channel", "hollywood-64B-to-1000", "protoactor-64B-to-1000"}, of["local/quorate-64B-to-1000"].Figures[0].Floors)
	require.Equal(t, []string{"floor-grpc-p50", "floor-tcp-p50", "hollywood-p50", "protoactor-p50"}, of["ask/quorate-p50"].Figures[0].Floors)
	require.Equal(t, []string{"memberlist-cpu"}, of["quiet/quorate-cpu"].Figures[0].Floors)
	for name, peer := range map[string]bool{
		"local/hollywood-64B-to-4": true, "remote/protoactor-1KiB-to-1000": true, "quiet/memberlist-heap": true,
		"remote/floor-tcp-64B": false, "local/quorate-raw-64B-to-4": false, "ask/quorate-64": false,
	} {
		require.Equal(t, peer, of[name].Peer, name)
	}
}

// The help of the program has a line for each group.
func TestTheProgramKnowsAllGroups(t *testing.T) {
	var help bytes.Buffer
	require.Zero(t, whole().Main([]string{"-h"}, nil, io.Discard, &help))
	for _, g := range Groups() {
		require.Contains(t, help.String(), "  "+g.Name+" ")
	}
	require.Contains(t, help.String(), "Without a group all are measured but these, which take long:\nquiet.\n")
}

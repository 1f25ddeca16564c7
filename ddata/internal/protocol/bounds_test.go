// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
)

// An operation too many ends at once, and says why; when one has ended there is room again.
func TestOperationsAreBounded(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	f := alone(t, 3, 2, reg, func(r *replica) { r.bounds.Operations = 2 })
	read := func(op protocol.OpID) {
		f.at(2).command(protocol.Read{Op: op, Key: "k", Level: protocol.Level{Name: protocol.Majority}, Limit: time.Second})
	}
	read(1)
	read(2)
	require.Empty(t, f.at(2).done)
	read(3)
	require.Len(t, f.at(2).done, 1)
	require.Equal(t, protocol.OpID(3), f.at(2).done[0].Op)
	require.Equal(t, protocol.Overloaded, f.at(2).done[0].Verdict)
	f.run(2 * time.Second)
	require.Len(t, f.at(2).done, 3, "the others have ended with their time")
	read(4)
	require.Len(t, f.at(2).done, 3)
}

// Messages that wait for a store which does not answer are bounded; what was dropped is
// counted.
func TestMessagesThatWaitForTheStoreAreBounded(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	f := alone(t, 3, 2, reg, onDisk, func(r *replica) { r.bounds.Held = 10 })
	f.at(1).heard = nil
	for op := range protocol.OpID(50) {
		f.at(1).say(2, reg, protocol.Put{Op: op + 1, Stamp: 1, Entries: []table.Entry{{Key: "k", State: table.Deleted, Stamp: 1}}})
	}
	require.Empty(t, f.at(1).heard)
	require.Equal(t, uint64(40), f.at(2).Counts().Unsent)
	f.at(2).written()
	require.Len(t, f.at(1).heard, 10)
}

// A batch that was forgotten for newer ones is asked for again entry by entry.
func TestForgottenBatchesAreMadeGood(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	f := alone(t, 3, 2, reg, func(r *replica) { r.bounds.Flights = 1 })
	for op := range protocol.OpID(5) {
		change := f.at(2).add(uint64(op))
		f.at(2).command(protocol.Write{
			Op: op + 1, Change: change, Level: protocol.Level{Name: protocol.Majority}, Limit: 20 * time.Second,
		})
		f.run(200 * time.Millisecond)
	}
	require.Empty(t, f.at(2).done)
	f.run(time.Second)
	asked := map[protocol.OpID]bool{}
	for _, l := range f.at(1).heard {
		if put, ok := l.message.Body.(protocol.Put); ok {
			asked[put.Op] = true
		}
	}
	for op := range asked {
		f.at(1).say(2, reg, protocol.PutTaken{Op: op})
	}
	require.Len(t, f.at(2).done, 5)
}

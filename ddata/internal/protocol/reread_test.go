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

// A read begins anew within one generation, since the key was deleted where it reads. A late answer to what
// it asked before, that a replica holds the same, says nothing of what it holds now: the read does not end
// before a majority has the deletion, so that no later read finds the key again.
//
// covers F16, I17.
func TestALateAnswerCountsForTheReadThatAsked(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	f := alone(t, 3, 1, reg)
	reader, late := f.at(1), f.at(3)
	reader.add(1)
	f.at(2).add(2)
	other, _ := f.at(2).table.Get("k")
	reader.command(protocol.Read{Op: 1, Key: "k", Level: protocol.Level{Name: protocol.Majority}, Limit: 20 * time.Second})
	before := mustHear[protocol.Ask](late)
	f.at(2).say(1, reg, protocol.Answer{Op: 1, Entry: &other})
	mustHear[protocol.Put](late)
	reader.command(protocol.Delete{Op: 2, Key: "k", Level: protocol.Level{Name: protocol.Local}, Limit: 20 * time.Second})
	f.run(2 * protocol.DefaultTiming().Retry)
	anew := mustHear[protocol.Ask](late)
	require.NotEqual(t, before.Hash, anew.Hash)
	require.Len(t, reader.done, 1, "of the deletion")
	late.say(1, reg, protocol.Answer{Op: 1, Same: true, Hash: before.Hash})
	require.Len(t, reader.done, 1)
	late.say(1, reg, protocol.Answer{Op: 1, Same: true, Hash: anew.Hash})
	require.Len(t, reader.done, 2)
	require.Equal(t, protocol.Confirmed, reader.done[1].Verdict)
	require.Equal(t, table.Deleted, reader.done[1].Entry.State)
}

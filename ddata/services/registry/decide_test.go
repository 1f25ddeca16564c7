// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
)

func nodeOf(uid uint64) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: "::1", Port: 7946}, UID: gossip.UID(uid)}
}

var drawName = rapid.StringOfN(rapid.RuneFrom([]rune{' '}, unicode.PrintRanges...), 1, 20, 80)

func drawEntry(t *rapid.T) Entry {
	e := Entry{
		Name: "mail", Address: drawName.Draw(t, "address"),
		Node: nodeOf(rapid.Uint64Range(1, 4).Draw(t, "node")), ID: rapid.Uint64Range(1, 3).Draw(t, "id"),
		Version: rapid.Uint64Range(1, 5).Draw(t, "version"),
	}
	if items := rapid.MapOfN(drawName, rapid.StringN(0, 5, 20), 0, 4).Draw(t, "metadata"); len(items) > 0 {
		e.Metadata = items
	}
	return e
}

func TestAnEntryIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEntry(t)
		got, err := decode(e.Name, e.entryID().place(), e.encode())
		require.NoError(t, err)
		require.Equal(t, e, got)
	})
}

// The encoding is kept in data that nodes of several versions share.
func TestTheBytesOfAnEntry(t *testing.T) {
	e := Entry{Name: "mail", Address: "a:1", Node: nodeOf(15), ID: 7, Version: 3, Metadata: map[string]string{"zone": "b", "az": ""}}
	require.Equal(t, "[::1]:7946#f/7", e.entryID().place())
	require.Equal(t, "\x0a\x03a:1"+"\x10\x03"+"\x1a\x04\x0a\x02az"+"\x1a\x09\x0a\x04zone\x12\x01b", string(e.encode()))
}

func TestFaultsOfEntries(t *testing.T) {
	good := Entry{Name: "mail", Address: "a:1"}
	require.NoError(t, good.Validate())
	many := map[string]string{}
	for i := range maxItems + 1 {
		many[strings.Repeat("k", i+1)] = ""
	}
	for key, e := range map[string]Entry{
		"name":     {Name: strings.Repeat("n", maxName+1), Address: "a"},
		"address":  {Name: "mail", Address: "\xff"},
		"metadata": {Name: "mail", Address: "a", Metadata: many},
	} {
		got, _ := field.Of(e.Validate())
		require.Equal(t, key, got)
	}
	require.Len(t, field.Parts(Entry{Metadata: map[string]string{"": "", "k": strings.Repeat("v", maxValue+1)}}.Validate()), 4)
}

func TestWhatMeansNothingIsPassedOver(t *testing.T) {
	good := Entry{Name: "mail", Address: "a:1", Node: nodeOf(1), ID: 1, Version: 1}
	c := content{}.Put(1, 1, good.entryID().place(), good.encode())
	for place, b := range map[string]string{
		"none": "", "a:1/2": "", nodeOf(1).String() + "/x": "", nodeOf(1).String() + "/2": "\x0a", nodeOf(1).String() + "/3": "",
		nodeOf(1).String() + "/4": "\x0a\x01a\x1a\x00",
	} {
		c = c.Put(1, 1, place, []byte(b))
	}
	all, malformed := roll("mail", c)
	require.Equal(t, []Entry{good}, all)
	require.Equal(t, 6, malformed)
}

func FuzzDecode(f *testing.F) {
	e := Entry{Name: "mail", Address: "a:1", Node: nodeOf(1), ID: 1, Version: 1, Metadata: map[string]string{"k": "v"}}
	f.Add(e.entryID().place(), e.encode())
	f.Add(e.entryID().place(), []byte("\x1a\x00"))
	f.Fuzz(func(t *testing.T, place string, b []byte) {
		e, err := decode("mail", place, b)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
			return
		}
		require.NoError(t, e.Validate())
		again, err := decode("mail", e.entryID().place(), e.encode())
		require.NoError(t, err)
		require.Equal(t, e, again)
	})
}

// Whatever a subscriber sees and skips, applying what it is told gives what is there; no
// update is told twice, and those that were not told are counted.
func TestEventsLeadToWhatIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, book, knows, versions := map[entryID]Entry{}, told{}, map[entryID]Entry{}, map[entryID]uint64{}
		for range rapid.IntRange(1, 30).Draw(t, "looks") {
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				e := drawEntry(t)
				if before, there := now[e.entryID()]; there && rapid.Bool().Draw(t, "vanishes") {
					delete(now, before.entryID())
					continue
				}
				e.Version = versions[e.entryID()] + rapid.Uint64Range(1, 3).Draw(t, "updates")
				now[e.entryID()], versions[e.entryID()] = e, e.Version
			}
			var list []Entry
			for _, e := range now {
				list = append(list, e)
			}
			for _, e := range book.learn(list) {
				before, known := knows[e.Entry.entryID()]
				switch e.Kind {
				case Appeared:
					require.False(t, known)
				case Updated:
					require.True(t, known)
					require.Equal(t, e.Entry.Version-before.Version-1, e.Missed)
				case Vanished:
					require.Equal(t, before, e.Entry)
				}
				if knows[e.Entry.entryID()] = e.Entry; e.Kind == Vanished {
					delete(knows, e.Entry.entryID())
				}
			}
			require.Equal(t, now, knows)
			require.Empty(t, book.learn(list), "nothing is told twice")
		}
	})
}

// An older version that is seen again for a moment is no news.
func TestAnOlderVersionIsNotTold(t *testing.T) {
	e, book := Entry{Name: "mail", Address: "a:2", Node: nodeOf(1), ID: 1, Version: 2}, told{}
	require.Len(t, book.learn([]Entry{e}), 1)
	old := e
	old.Address, old.Version = "a:1", 1
	require.Empty(t, book.learn([]Entry{old}))
	require.Empty(t, book.learn([]Entry{e}))
}

// An entry that one replica has and another one has not yet is not told to have vanished,
// unless it is missing for long.
func TestDoubts(t *testing.T) {
	e := Entry{Name: "mail", Address: "a:1", Node: nodeOf(1), ID: 1, Version: 1}
	book, d, now := told{}, doubts{}, time.Unix(0, 0)
	look := func(after time.Duration, all ...Entry) []Event {
		now = now.Add(after)
		return book.learn(d.fill(all, book, now))
	}
	require.Len(t, look(0, e), 1)
	require.Empty(t, look(time.Minute))
	require.Empty(t, look(doubtFor-1))
	require.Empty(t, look(1, e), "it is there again")
	require.Empty(t, look(time.Minute))
	require.Len(t, look(doubtFor), 1)
	require.Empty(t, look(0))
	require.Empty(t, d)
	require.Len(t, look(0, e), 1)
}

// Writes at one place come from one node; a removal by another one takes back what it has
// seen, and a later version survives it.
func TestAConcurrentUpdateSurvivesARemoval(t *testing.T) {
	const here = crdt.Origin(1)
	e := Entry{Name: "mail", Address: "a:1", Node: nodeOf(1), ID: 1, Version: 1}
	place := e.entryID().place()
	a := content{}.Put(here, 1, place, e.encode())
	b := a.Remove(place)
	e.Version = 2
	a = a.Put(here, 2, place, e.encode())
	all, _ := roll("mail", b.Merge(a))
	require.Equal(t, []Entry{e}, all)
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package survey_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/survey"
)

// Laws: pages leave nothing out and have nothing twice, nobody is told twice, and what is written is read.

// Whatever the pages are like, all of them together have each entity once, in order.
func TestPagesHaveEveryEntityOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 4).Draw(t, "nodes")
		perNode := make([][]survey.Entity, nodes)
		var want []survey.Cursor
		for shard := range rapid.IntRange(1, 8).Draw(t, "shards") {
			home := rapid.IntRange(0, nodes-1).Draw(t, "home")
			for i := range rapid.IntRange(0, 12).Draw(t, "entities") {
				id := fmt.Sprintf("e%02d", i)
				if rapid.IntRange(0, 5).Draw(t, "long") == 0 {
					id += string(make([]byte, 400))
				}
				at := survey.Cursor{Shard: protocol.ShardID(shard), ID: id}
				want, perNode[home] = append(want, at), append(perNode[home], survey.Entity{At: at})
				if other := rapid.IntRange(0, 4*nodes).Draw(t, "moves from"); other < nodes && other != home {
					perNode[other] = append(perNode[other], survey.Entity{At: at})
				}
			}
		}
		most := rapid.IntRange(1, 9).Draw(t, "most")
		var got []survey.Cursor
		after := survey.Cursor{}
		for more := true; more; {
			var said []survey.NodeAnswer
			for i, all := range perNode {
				p := survey.NewPage(after, most)
				for _, e := range rapid.Permutation(all).Draw(t, "order") {
					if p.Wants(e.At) {
						p.Offer(e)
					}
				}
				a := survey.Answer{}
				a.Entities, a.More = p.Entities()
				require.LessOrEqual(t, len(a.Entities), most)
				said = append(said, survey.NodeAnswer{Node: member(i + 1), Answer: a})
			}
			var page []survey.PlacedEntity
			page, more = survey.Merge(said, most)
			require.LessOrEqual(t, len(page), most)
			require.True(t, !more || len(page) > 0, "a page that is not the last has something")
			for _, e := range page {
				got, after = append(got, e.At), e.At
			}
		}
		require.Equal(t, want, got)
	})
}

// tribe is a cluster whose shards move, and whose homes are asked to tell.
type tribe struct {
	homes  []int            // By shard.
	epochs []protocol.Epoch // By shard.
	told   []int            // By shard: how often its entities were told.
	knows  []int            // What the asker takes for the homes.
	known  []protocol.Epoch
}

func (c *tribe) move(shard, to int) {
	c.homes[shard] = to
	c.epochs[shard].N++
}

// No shard is told twice, whatever moves and whoever does not answer; what is said to be reached was told, and when all
// answer everybody is told in the end.
func TestNobodyIsToldTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards, nodes := rapid.IntRange(1, 6).Draw(t, "shards"), rapid.IntRange(1, 4).Draw(t, "nodes")
		c := tribe{told: make([]int, shards)}
		for range shards {
			c.homes = append(c.homes, rapid.IntRange(1, nodes).Draw(t, "home"))
			c.epochs = append(c.epochs, protocol.Epoch{Born: 1, N: 1})
		}
		c.knows, c.known = slices.Clone(c.homes), slices.Clone(c.epochs)
		var all []protocol.ShardID
		for s := range protocol.ShardID(shards) {
			all = append(all, s)
		}
		b := survey.NewBroadcast(survey.Question{Type: survey.TypeTell, Kind: "k"}, all)
		silent := false
		for round := 0; b.Open() > 0 && round < 20; round++ {
			if rapid.Bool().Draw(t, "moves") && round < 10 {
				c.move(rapid.IntRange(0, shards-1).Draw(t, "shard"), rapid.IntRange(1, nodes).Draw(t, "to"))
			}
			parts := b.Next(func(s protocol.ShardID) (gossip.NodeID, protocol.Epoch) { return member(c.knows[s]), c.known[s] })
			var f survey.Finished
			for _, p := range parts {
				if round < 10 && rapid.IntRange(0, 4).Draw(t, "unasked") == 0 {
					f.Missing = append(f.Missing, survey.Missing{Node: p.Node, Why: "is no member", Unasked: true})
					continue
				}
				answer := survey.Answer{}
				for _, place := range p.Question.Shards {
					s := place.Shard
					away := member(c.homes[s]) != p.Node || c.epochs[s] != place.Epoch
					if !away {
						c.told[s]++
					}
					if rapid.IntRange(0, 9).Draw(t, "unsaid") == 0 {
						silent = true
						continue
					}
					answer.Told = append(answer.Told, survey.Told{Shard: s, Away: away, Reached: uint32(1)})
				}
				switch {
				case round < 10 && rapid.IntRange(0, 4).Draw(t, "silent") == 0:
					silent = true
					f.Missing = append(f.Missing, survey.Missing{Node: p.Node, Why: "did not answer"})
				default:
					f.Answers = append(f.Answers, survey.NodeAnswer{Node: p.Node, Answer: answer})
				}
			}
			b.Answered(f)
			if rapid.Bool().Draw(t, "learns") || round >= 10 {
				c.knows, c.known = slices.Clone(c.homes), slices.Clone(c.epochs)
			}
		}
		reached := 0
		for s, n := range c.told {
			require.LessOrEqual(t, n, 1, "shard %d", s)
			reached += n
		}
		o := b.Outcome()
		require.Zero(t, b.Open())
		require.Equal(t, shards, o.Shards+o.Lost)
		require.LessOrEqual(t, o.Reached, reached)
		require.LessOrEqual(t, reached, o.Reached+o.Lost)
		if !silent {
			require.Equal(t, shards, o.Reached)
		}
	})
}

var (
	drawText   = rapid.StringN(0, 20, 100)
	drawName   = rapid.StringOfN(rapid.RuneFrom([]rune{' '}, unicode.PrintRanges...), 1, 20, 128)
	drawCursor = rapid.Custom(func(t *rapid.T) survey.Cursor {
		return survey.Cursor{Shard: protocol.ShardID(rapid.Uint32Range(0, protocol.MaxShards-1).Draw(t, "shard")), ID: rapid.StringN(1, 20, 512).Draw(t, "id")}
	})
	drawEpoch = rapid.Custom(func(t *rapid.T) protocol.Epoch {
		return protocol.Epoch{Born: rapid.Int64Range(1, 1<<40).Draw(t, "born"), N: rapid.Uint64().Draw(t, "n")}
	})
)

// drawMessage draws a question or an answer in the form that decoding returns.
func drawMessage(t *rapid.T) any {
	shard := func() protocol.ShardID { return drawCursor.Draw(t, "at").Shard }
	n := rapid.IntRange(0, 5).Draw(t, "n")
	if rapid.Bool().Draw(t, "question") {
		q := survey.Question{
			ID: rapid.Uint64().Draw(t, "id"), Type: survey.QuestionType(rapid.IntRange(1, 4).Draw(t, "sort")), Kind: drawName.Draw(t, "kind"),
			Limit: time.Duration(rapid.IntRange(1, 60_000).Draw(t, "limit")) * time.Millisecond, After: drawCursor.Draw(t, "after"),
			Most: rapid.Uint32Range(0, survey.MaxPageEntities).Draw(t, "most"), Rate: rapid.Uint32().Draw(t, "rate"),
		}
		for range n {
			q.Shards = append(q.Shards, survey.Place{Shard: shard(), Epoch: drawEpoch.Draw(t, "epoch")})
		}
		if rapid.Bool().Draw(t, "payload") {
			q.Payload = rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "bytes")
		}
		return q
	}
	a := survey.Answer{
		ID: rapid.Uint64().Draw(t, "id"), Fault: survey.Fault(rapid.IntRange(0, 3).Draw(t, "fault")), Detail: drawText.Draw(t, "detail"),
		Standing: rapid.Bool().Draw(t, "standing"), Drained: rapid.Bool().Draw(t, "drained"), Proxy: rapid.Bool().Draw(t, "proxy"), More: rapid.Bool().Draw(t, "more"),
	}
	for range n {
		a.Shards = append(a.Shards, survey.Shard{
			Shard: shard(), Epoch: drawEpoch.Draw(t, "epoch"), Stopping: rapid.Bool().Draw(t, "stopping"), Entities: rapid.Uint32().Draw(t, "entities"),
			Stuck: rapid.Uint32().Draw(t, "stuck"), Waits: drawText.Draw(t, "waits"),
		})
		a.Entities = append(a.Entities, survey.Entity{
			At: drawCursor.Draw(t, "at"), State: drawText.Draw(t, "state"), Since: time.UnixMilli(rapid.Int64Range(1, 1<<45).Draw(t, "ms")).UTC(),
			Waiting: rapid.Uint32().Draw(t, "waiting"), Stuck: rapid.Bool().Draw(t, "stuck"),
		})
		a.Told = append(a.Told, survey.Told{
			Shard: shard(), Away: rapid.Bool().Draw(t, "away"), Cut: rapid.Bool().Draw(t, "cut"), Reached: rapid.Uint32().Draw(t, "reached"), Full: rapid.Uint32().Draw(t, "full"),
		})
		a.Lines = append(a.Lines, rapid.StringN(1, 20, 100).Draw(t, "line"))
	}
	return a
}

// What is written is read.
func TestMessagesComeAsTheyWereSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMessage(t)
		b, err := survey.Codec{}.Append(nil, m)
		require.NoError(t, err)
		got, err := survey.Codec{}.Decode(b)
		require.NoError(t, err)
		require.Equal(t, m, got)
	})
	_, err := survey.Codec{}.Append(nil, 7)
	require.ErrorIs(t, err, survey.ErrForeign)
}

// Any bytes are read without a panic, and what was read can be written and read again.
func FuzzDecode(f *testing.F) {
	for _, m := range []any{
		survey.Question{ID: 1, Type: survey.TypeTell, Kind: "k", Limit: time.Second, Payload: []byte("x"), Shards: []survey.Place{{Shard: 3, Epoch: protocol.Epoch{Born: 1, N: 2}}}},
		survey.Question{ID: 2, Type: survey.TypeEntities, Kind: "k", Limit: time.Second, After: survey.Cursor{Shard: 4, ID: "e"}, Most: 10},
		survey.Answer{ID: 1, Shards: []survey.Shard{{Shard: 3, Epoch: protocol.Epoch{Born: 1, N: 2}, Entities: 5, Waits: "a lease"}}, Lines: []string{"idle"}},
		survey.Answer{ID: 2, More: true, Entities: []survey.Entity{{At: survey.Cursor{Shard: 1, ID: "e"}, State: "idle"}}, Told: []survey.Told{{Shard: 3, Cut: true}}},
	} {
		b, err := survey.Codec{}.Append(nil, m)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte{8, 1, 90, 2, 18, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := survey.Codec{}.Decode(b)
		if err != nil {
			return
		}
		again, err := survey.Codec{}.Append(nil, m)
		require.NoError(t, err)
		got, err := survey.Codec{}.Decode(again)
		if err != nil && len(again) < len(b) {
			return // Without the fields that nobody knows it has less room than its lists take.
		}
		require.NoError(t, err)
		require.Equal(t, m, got)
	})
}

// While the number of shards changes, the former ones wait until the next ones are told: an entity that goes over
// meanwhile is told once.
func TestFormerShardsAreToldLast(t *testing.T) {
	former, next := protocol.Layout{Shards: 2}, protocol.Layout{Number: 1, Shards: 3}
	all := []protocol.ShardID{former.Shard(0), former.Shard(1), next.Shard(0), next.Shard(1), next.Shard(2)}
	b := survey.NewBroadcast(survey.Question{Type: survey.TypeTell, Kind: "k"}, all)
	homeless := next.Shard(1)
	round := func() (asked []protocol.ShardID) {
		var f survey.Finished
		for _, p := range b.Next(func(s protocol.ShardID) (node gossip.NodeID, epoch protocol.Epoch) {
			if s != homeless {
				node, epoch = member(1), protocol.Epoch{Born: 1, N: 1}
			}
			return node, epoch
		}) {
			var a survey.Answer
			for _, place := range p.Question.Shards {
				asked = append(asked, place.Shard)
				a.Told = append(a.Told, survey.Told{Shard: place.Shard, Reached: 1})
			}
			f.Answers = append(f.Answers, survey.NodeAnswer{Node: p.Node, Answer: a})
		}
		b.Answered(f)
		return asked
	}
	require.Equal(t, []protocol.ShardID{next.Shard(0), next.Shard(2)}, round())
	require.Empty(t, round())
	homeless = next.Shard(2)
	require.Equal(t, []protocol.ShardID{next.Shard(1)}, round())
	require.Equal(t, []protocol.ShardID{former.Shard(0), former.Shard(1)}, round())
	require.Zero(t, b.Open())
	require.Equal(t, 5, b.Outcome().Reached)
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/ddata/internal/wire"
	"github.com/quorate/quorate/gossip"
)

// registry knows types by name.
type registry map[string]crdt.Type

// Type returns the type of a name.
func (r registry) Type(name string) (crdt.Type, bool) {
	t, ok := r[name]
	return t, ok
}

var (
	counter   = crdt.TypeOf[crdt.GCounter]()
	texts     = crdt.TypeOf[crdt.ORSet[string]]()
	pncounter = crdt.TypeOf[crdt.PNCounter]()
	types     = registry{"gcounter": counter, texts.Name(): texts, pncounter.Name(): pncounter}
	codec     = wire.Codec{Types: types}
)

// list draws lists; an empty one is nil, as it comes off the wire.
func list[V any](of *rapid.Generator[V]) *rapid.Generator[[]V] {
	return rapid.Map(rapid.SliceOfN(of, 0, 12), func(all []V) []V {
		if len(all) == 0 {
			return nil
		}
		return all
	})
}

// Draws of parts of messages.
var (
	drawKey    = rapid.StringOfN(rapid.RuneFrom([]rune{' '}, unicode.PrintRanges...), 1, 20, 128)
	drawText   = rapid.StringN(0, 40, 128)
	drawID     = rapid.Custom(func(t *rapid.T) protocol.ReplicaID { return protocol.ReplicaID(rapid.Uint64().Draw(t, "replica")) })
	drawOrigin = rapid.Custom(func(t *rapid.T) crdt.Origin { return crdt.Origin(rapid.Uint64Range(1, 40).Draw(t, "origin")) })
	drawValue  = rapid.Custom(func(t *rapid.T) typed {
		o := drawOrigin.Draw(t, "of")
		switch rapid.IntRange(0, 2).Draw(t, "type") {
		case 0:
			return typed{counter, crdt.GCounter{}.Add(o, rapid.Uint64Max(1<<40).Draw(t, "add")).Settled()}
		case 1:
			return typed{texts, crdt.ORSet[string]{}.Add(o, drawText.Draw(t, "element")).Settled()}
		default:
			return typed{pncounter, crdt.PNCounter{}.Settled()}
		}
	})
	drawVersions = rapid.Custom(func(t *rapid.T) table.Versions {
		var v table.Versions
		for _, o := range slices.Compact(slices.Sorted(slices.Values(list(drawOrigin).Draw(t, "origins")))) {
			v = append(v, table.Version{Origin: o, Count: rapid.Uint64Min(1).Draw(t, "count")})
		}
		return v
	})
	drawEntry = rapid.Custom(func(t *rapid.T) table.Entry {
		x := table.Entry{
			Key: drawKey.Draw(t, "key"), State: table.State(rapid.IntRange(1, 3).Draw(t, "state")),
			Versions: drawVersions.Draw(t, "versions"), Floor: drawVersions.Draw(t, "floor"), Stamp: rapid.Uint64().Draw(t, "stamp"),
		}
		v := drawValue.Draw(t, "value")
		if x.State != table.Deleted {
			x.Type = v.typ
		}
		if x.State == table.Live {
			x.Value = v.v
		}
		return x
	})
	drawOptional = rapid.Custom(func(t *rapid.T) *table.Entry {
		if rapid.Bool().Draw(t, "absent") {
			return nil
		}
		x := drawEntry.Draw(t, "entry")
		return &x
	})
	drawChange = rapid.Custom(func(t *rapid.T) table.Change {
		v, from := drawValue.Draw(t, "delta"), rapid.Uint64().Draw(t, "from")
		x := table.Change{
			Key: drawKey.Draw(t, "key"), Type: v.typ, Origin: drawOrigin.Draw(t, "origin"), From: from,
			To: rapid.Uint64Min(from).Draw(t, "to"), Whole: rapid.Bool().Draw(t, "whole"),
		}
		if rapid.Bool().Draw(t, "some") {
			x.Delta = v.v
		}
		return x
	})
	drawBallot = rapid.Custom(func(t *rapid.T) protocol.Ballot {
		return protocol.Ballot{Round: rapid.Uint32().Draw(t, "round"), By: drawID.Draw(t, "by")}
	})
	drawLineage = rapid.Custom(func(t *rapid.T) protocol.Lineage {
		return protocol.Lineage{Turn: rapid.Uint32().Draw(t, "turn"), ID: rapid.Uint64().Draw(t, "lineage")}
	})
	drawSet = rapid.Custom(func(t *rapid.T) protocol.Set {
		s := protocol.NewSet(list(rapid.Custom(func(t *rapid.T) protocol.Replica {
			return protocol.Replica{
				ID:   protocol.ReplicaID(rapid.Uint64Range(1, math.MaxUint64-1).Draw(t, "id")),
				Zone: rapid.SampledFrom([]string{"", "north", "south"}).Draw(t, "zone"),
			}
		})).Draw(t, "replicas")...)
		if len(s) == 0 {
			return nil
		}
		return s
	})
	drawBucket   = rapid.Uint16Max(table.Buckets - 1)
	drawBuckets  = rapid.SliceOfN(drawBucket, 1, 4)
	drawRegister = rapid.Custom(func(t *rapid.T) *protocol.Register {
		return &protocol.Register{
			Lineage: drawLineage.Draw(t, "lineage"), Continues: rapid.Uint64().Draw(t, "continues"), Gen: rapid.Uint64Min(1).Draw(t, "gen"),
			Phase:   protocol.Phase(rapid.IntRange(1, 3).Draw(t, "phase")),
			Current: drawSet.Draw(t, "current"), Next: drawSet.Draw(t, "next"), Old: drawSet.Draw(t, "old"),
			Held: list(rapid.Custom(func(t *rapid.T) protocol.Held {
				return protocol.Held{Buckets: drawBuckets.Draw(t, "buckets"), Homes: append(drawSet.Draw(t, "homes"), protocol.Replica{ID: math.MaxUint64}), Old: drawSet.Draw(t, "former"), Moves: rapid.Bool().Draw(t, "moves")}
			})).Draw(t, "held"),
			Resets: list(rapid.Custom(func(t *rapid.T) protocol.Reset {
				return protocol.Reset{Gen: rapid.Uint64Min(1).Draw(t, "reset"), Spared: drawSet.Draw(t, "spared"), Buckets: drawBuckets.Draw(t, "buckets")}
			})).Draw(t, "resets"),
			Swept: rapid.Uint64().Draw(t, "swept"), Dropped: rapid.Uint64().Draw(t, "dropped"), Retired: list(drawOrigin).Draw(t, "retired"),
			Unknown: rapid.SampledFrom([]string{"", "\x98\x06\x01", "\x9a\x06\x00\x98\x06\x02"}).Draw(t, "unknown"),
		}
	})
	drawMaybe = rapid.Custom(func(t *rapid.T) *protocol.Register {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		return drawRegister.Draw(t, "register")
	})
	drawRefusals = list(rapid.Custom(func(t *rapid.T) protocol.Refusal {
		return protocol.Refusal{Key: drawKey.Draw(t, "key"), Reason: drawText.Draw(t, "reason")}
	}))
	drawLevel = rapid.Custom(func(t *rapid.T) protocol.Level {
		n := rapid.IntRange(0, math.MaxInt32)
		return protocol.Level{
			Name: protocol.LevelName(rapid.IntRange(0, 4).Draw(t, "strength")), N: n.Draw(t, "n"), Extra: n.Draw(t, "extra"), MinCap: n.Draw(t, "cap"),
		}
	})
	drawLimit = rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Min(0).Draw(t, "limit"))
	})
	drawNode = rapid.Custom(func(t *rapid.T) gossip.NodeID { return node(rapid.IntRange(1, 20).Draw(t, "node")) })
)

// typed is a value and its type.
type typed struct {
	typ crdt.Type
	v   any
}

func node(i int) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: fmt.Sprintf("10.0.0.%d", i), Port: 7946}, UID: gossip.UID(i)}
}

// draws has a draw for each body.
var draws = []func(t *rapid.T) any{
	func(t *rapid.T) any {
		return protocol.Hello{Ask: rapid.Bool().Draw(t, "ask"), Taken: rapid.Uint64().Draw(t, "taken")}
	},
	func(t *rapid.T) any {
		return protocol.Prepare{Slot: rapid.Uint64().Draw(t, "slot"), Ballot: drawBallot.Draw(t, "ballot")}
	},
	func(t *rapid.T) any {
		return protocol.Promise{
			Slot: rapid.Uint64().Draw(t, "slot"), Ballot: drawBallot.Draw(t, "ballot"), Refused: rapid.Bool().Draw(t, "refused"),
			Accepted: drawBallot.Draw(t, "accepted"), Value: drawMaybe.Draw(t, "value"),
		}
	},
	func(t *rapid.T) any {
		return protocol.Accept{Slot: rapid.Uint64().Draw(t, "slot"), Ballot: drawBallot.Draw(t, "ballot"), Value: drawRegister.Draw(t, "value")}
	},
	func(t *rapid.T) any {
		return protocol.Accepted{Slot: rapid.Uint64().Draw(t, "slot"), Ballot: drawBallot.Draw(t, "ballot"), Refused: rapid.Bool().Draw(t, "refused")}
	},
	func(t *rapid.T) any {
		return protocol.Deltas{Seq: rapid.Uint64().Draw(t, "seq"), Stamp: rapid.Uint64().Draw(t, "stamp"), Changes: list(drawChange).Draw(t, "changes")}
	},
	func(t *rapid.T) any {
		return protocol.DeltasTaken{
			Seq: rapid.Uint64().Draw(t, "seq"), Stale: rapid.Bool().Draw(t, "stale"), Gaps: list(drawKey).Draw(t, "gaps"), Deleted: list(drawKey).Draw(t, "deleted"),
			Refusals: drawRefusals.Draw(t, "refusals"),
		}
	},
	func(t *rapid.T) any {
		return protocol.Put{Op: drawOp(t), Stamp: rapid.Uint64().Draw(t, "stamp"), Entries: list(drawEntry).Draw(t, "entries")}
	},
	func(t *rapid.T) any {
		return protocol.PutTaken{Op: drawOp(t), Stale: rapid.Bool().Draw(t, "stale"), Deleted: list(drawKey).Draw(t, "deleted"), Refusals: drawRefusals.Draw(t, "refusals")}
	},
	func(t *rapid.T) any {
		return protocol.Ask{Op: drawOp(t), Key: drawKey.Draw(t, "key"), Hash: rapid.Uint64().Draw(t, "hash")}
	},
	func(t *rapid.T) any {
		return protocol.Answer{Op: drawOp(t), Hash: rapid.Uint64().Draw(t, "hash"), Same: rapid.Bool().Draw(t, "same"), Entry: drawOptional.Draw(t, "entry"), Away: rapid.Bool().Draw(t, "away")}
	},
	func(t *rapid.T) any { return protocol.Compare{Pass: drawPass(t), Root: rapid.Uint64().Draw(t, "root")} },
	func(t *rapid.T) any {
		return protocol.Groups{Pass: drawPass(t), Same: rapid.Bool().Draw(t, "same"), Sums: list(rapid.Uint64()).Draw(t, "sums")}
	},
	func(t *rapid.T) any {
		return protocol.AskBuckets{Pass: drawPass(t), Groups: list(rapid.Uint8()).Draw(t, "groups")}
	},
	func(t *rapid.T) any {
		return protocol.BucketHashes{Pass: drawPass(t), Groups: list(rapid.Uint8()).Draw(t, "groups"), Hashes: list(rapid.Uint64()).Draw(t, "hashes")}
	},
	func(t *rapid.T) any {
		return protocol.Pull{Pass: drawPass(t), Buckets: list(rapid.Custom(func(t *rapid.T) protocol.BucketSummary {
			return protocol.BucketSummary{Bucket: drawBucket.Draw(t, "bucket"), Keys: list(rapid.Custom(func(t *rapid.T) protocol.KeyHash {
				return protocol.KeyHash{Key: rapid.Uint64().Draw(t, "key"), Entry: rapid.Uint64().Draw(t, "entry")}
			})).Draw(t, "keys")}
		})).Draw(t, "buckets")}
	},
	func(t *rapid.T) any {
		return protocol.PullReply{
			Pass: drawPass(t), Stamp: rapid.Uint64().Draw(t, "stamp"), Done: list(drawBucket).Draw(t, "done"), Entries: list(drawEntry).Draw(t, "entries"),
			Missing: list(rapid.Custom(func(t *rapid.T) protocol.MissingEntry {
				return protocol.MissingEntry{Bucket: drawBucket.Draw(t, "bucket"), Key: rapid.Uint64().Draw(t, "key")}
			})).Draw(t, "wants"),
		}
	},
	func(t *rapid.T) any {
		return protocol.Sweep{Gen: rapid.Uint64().Draw(t, "gen"), UpTo: rapid.Uint64().Draw(t, "up to"), Retired: list(drawOrigin).Draw(t, "retired")}
	},
	func(t *rapid.T) any {
		return protocol.SweepReply{
			Gen: rapid.Uint64().Draw(t, "gen"), Tombs: rapid.Uint64().Draw(t, "tombs"), Origins: rapid.Uint64().Draw(t, "origins"), Veto: rapid.Bool().Draw(t, "veto"),
		}
	},
	func(t *rapid.T) any {
		return protocol.OlderStore{Of: drawID.Draw(t, "of"), Written: rapid.Uint64().Draw(t, "written")}
	},
	func(t *rapid.T) any { return protocol.EntryRequest{Op: drawOp(t), Key: drawKey.Draw(t, "key")} },
	func(t *rapid.T) any {
		return protocol.EntryReply{
			Op: drawOp(t), Away: rapid.Bool().Draw(t, "away"), Entry: drawOptional.Draw(t, "entry"), At: drawOrigin.Draw(t, "at"), Base: rapid.Uint64().Draw(t, "base"),
		}
	},
	func(t *rapid.T) any {
		v := drawValue.Draw(t, "delta")
		return protocol.Commit{
			Op: drawOp(t), Key: drawKey.Draw(t, "key"), Type: v.typ, Delta: v.v, Whole: rapid.Bool().Draw(t, "whole"),
			Base: rapid.Uint64().Draw(t, "base"), Level: drawLevel.Draw(t, "level"), Limit: drawLimit.Draw(t, "limit"), Again: rapid.Bool().Draw(t, "again"),
		}
	},
	func(t *rapid.T) any {
		return protocol.RemoveKey{Op: drawOp(t), Stamp: 7, Key: drawKey.Draw(t, "key"), Level: drawLevel.Draw(t, "level"), Limit: drawLimit.Draw(t, "limit")}
	},
	func(t *rapid.T) any {
		return protocol.Committed{
			Op: drawOp(t), Verdict: protocol.Verdict(rapid.Uint8().Draw(t, "verdict")), Answered: list(drawNode).Draw(t, "answered"),
			Missing: list(drawID).Draw(t, "missing"), Reason: drawText.Draw(t, "reason"),
			Refusals: list(rapid.Custom(func(t *rapid.T) protocol.NodeRefusal {
				return protocol.NodeRefusal{Node: drawNode.Draw(t, "node"), Reason: drawText.Draw(t, "why")}
			})).Draw(t, "refusals"),
		}
	},
}

func drawOp(t *rapid.T) protocol.OpID     { return protocol.OpID(rapid.Uint64().Draw(t, "op")) }
func drawPass(t *rapid.T) protocol.PassID { return protocol.PassID(rapid.Uint64().Draw(t, "pass")) }

func drawEnvelope(t *rapid.T) protocol.Envelope {
	return protocol.Envelope{
		Group: rapid.Uint8().Draw(t, "group"), From: drawID.Draw(t, "from"), Lineage: drawLineage.Draw(t, "lineage"),
		Gen: rapid.Uint64().Draw(t, "gen"), Sealed: rapid.Bool().Draw(t, "sealed"), Caught: rapid.Bool().Draw(t, "caught"),
		Loaded: rapid.Uint64().Draw(t, "loaded"), Written: rapid.Uint64().Draw(t, "written"),
		Agrees: rapid.Bool().Draw(t, "agrees"), Apart: rapid.Bool().Draw(t, "apart"), Older: rapid.Bool().Draw(t, "older"),
		Unsure: rapid.Bool().Draw(t, "unsure"), Suspended: rapid.Bool().Draw(t, "suspended"), Restarts: rapid.Uint64().Draw(t, "restarts"),
		Register: drawMaybe.Draw(t, "register"), Body: rapid.SampledFrom(draws).Draw(t, "body")(t),
	}
}

// Law: what was appended is what is decoded, behind whatever it was appended to, and nothing
// of the input is kept.
func TestEnvelopesSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawEnvelope(t)
		b, err := codec.Append([]byte("before"), m)
		require.NoError(t, err)
		require.Equal(t, "before", string(b[:6]))
		got, err := codec.Decode(b[6:])
		require.NoError(t, err)
		clear(b)
		require.Equal(t, m, got)
	})
}

// Every message that the machine handles has a row in the table of bodies, and a draw and
// golden bytes here: the messages are found in the program text.
func TestEveryMessageOfTheMachineIsKnown(t *testing.T) {
	var drawn []string
	rapid.Check(t, func(t *rapid.T) {
		drawn = nil
		for _, draw := range draws {
			m := draw(t)
			drawn = append(drawn, strings.TrimPrefix(fmt.Sprintf("%T", m), "protocol."))
			_, err := codec.Append(nil, protocol.Envelope{Body: m})
			require.NoError(t, err)
		}
	})
	slices.Sort(drawn)
	require.Equal(t, bodiesInText(t), drawn)
}

// bodiesInText returns the names of the types in the cases of the machine's switches over
// the body of an envelope, sorted.
func bodiesInText(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../protocol/*.go")
	require.NoError(t, err)
	var names []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSwitchStmt); ok && overBody(s) {
				for _, c := range s.Body.List {
					for _, of := range c.(*ast.CaseClause).List {
						names = append(names, of.(*ast.Ident).Name)
					}
				}
			}
			return true
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// overBody reports whether a switch is over the type of an envelope's body.
func overBody(s *ast.TypeSwitchStmt) bool {
	assign, ok := s.Assign.(*ast.AssignStmt)
	if !ok {
		return false
	}
	assert, ok := assign.Rhs[0].(*ast.TypeAssertExpr)
	if !ok {
		return false
	}
	of, ok := assert.X.(*ast.SelectorExpr)
	return ok && of.Sel.Name == "Body"
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/machinetest"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/internal/wire"
)

var rewrite = flag.Bool("rewrite", false, "write the golden bytes anew")

func node(i int) gossip.NodeID {
	return gossip.NodeID{
		Address: gossip.Address{Host: fmt.Sprintf("10.0.%d.%d", i/250, i%250), Port: uint16(7946 + i%2)},
		UID:     gossip.UID(i)*0x9e3779b97f4a7c15 + 1,
	}
}

func member(i int) gossip.Member {
	m := gossip.Member{
		Node: node(i), Status: gossip.Joining, Zone: fmt.Sprintf("zone-%d", i%3), AppVersion: "1.4.0",
		Protocol: gossip.ProtocolRange{Min: 1, Max: 2}, Settings: 0xfeedface,
	}
	if i%2 == 0 {
		m.Roles = []string{"backend", "cache"}
		m.Services = []uint16{1, 3}
	}
	return m
}

// state returns a state with n members that are up, all of whom have seen it,
// one that is removed and one that is unreachable.
func state(n int) *gossip.State {
	s := gossip.New(gossip.ClusterID{Born: 1767225600000, Nonce: 42})
	self := node(0)
	s = s.Edit(self, func(e *gossip.Edit) {
		for i := range n + 1 {
			e.Join(member(i))
		}
	})
	s = s.Edit(self, func(e *gossip.Edit) {
		var voters []gossip.NodeID
		for i := range n + 1 {
			e.SetStatus(node(i), gossip.Up, gossip.UpNumber(i+1))
			voters = append(voters, node(i))
		}
		e.SetConfig(voters)
		e.SetDowning(gossip.DowningStrategy{Name: "keep-majority", Version: "1", Parameters: "a=b", Pure: true, MajorityOnly: true})
	})
	for i := range n {
		s = s.See(node(i))
		s = s.Edit(node(i), func(e *gossip.Edit) { e.AddService(9) })
	}
	s = s.Edit(self, func(e *gossip.Edit) { e.SetStatus(node(n), gossip.Down, gossip.UpNumber(n+1)) })
	s = s.Edit(self, func(e *gossip.Edit) { e.Remove(node(n), time.UnixMilli(1767225700000)) })
	if n > 2 {
		s = s.Edit(node(1), func(e *gossip.Edit) { e.Mark(node(2), gossip.Unreachable) })
	}
	return s
}

// messages returns one message of each type, with every field set, and messages with fields of a later release.
func messages() map[string]any {
	all := known()
	s := later(state(4))
	all["gossip-state-later"] = protocol.GossipState{State: s}
	request := all["join-request"].(protocol.JoinRequest)
	request.Member.Unknown = s.Member(node(6)).Unknown
	all["join-request-later"] = request
	return all
}

// known returns the messages without fields of a later release.
func known() map[string]any {
	s := state(4)
	older := s
	s = s.Edit(node(3), func(e *gossip.Edit) { e.Mark(node(2), gossip.Terminated); e.AddService(12) })
	differences := []protocol.Difference{{Key: "fence", Member: "3s", Joiner: "4s"}, {Key: "x", Joiner: "1"}}
	joiner := member(6)
	joiner.Data = 0xfedcba9876543211
	claim := protocol.Claim{
		Record: protocol.Record{
			Data: 0xfedcba9876543211, Promise: 1893553448060, Cluster: s.Cluster(), EpochBorn: 1893553448059,
			Stamp:    protocol.Stamp{Born: s.Cluster().Born, Gen: 7, By: 9},
			Voters:   []protocol.Voter{{Node: node(1), Data: 5}, {Node: node(2)}},
			Previous: []protocol.Voter{{Node: node(2)}},
			Yielded:  gossip.Yield{To: gossip.ClusterID{Born: 1893553448062, Nonce: 8, Origin: 6}, At: [gossip.YieldAddresses]gossip.Address{node(5).Address}},
		},
		Cluster: s.Cluster(), Standing: true, Leaving: true, Yielded: true, Voters: []gossip.NodeID{node(1)},
		List: []gossip.Address{node(1).Address, node(4).Address}, Found: true, Evidence: protocol.ListListed | protocol.AddressKnown, Kept: true,
	}
	switched := s.Edit(node(0), func(e *gossip.Edit) {
		e.SetLoaded([]gossip.StrategyID{5, 0xfedcba9876543210})
		e.SetDowning(gossip.DowningStrategy{Name: "witness", Version: "1.0.0", Parameters: "url=x"})
	})
	downed := s.Edit(node(0), func(e *gossip.Edit) {
		e.Down(node(2), "keep-majority: it is lost")
		e.Down(node(3), "keep-majority: it is lost")
	}).Edit(node(1), func(e *gossip.Edit) {
		e.Down(node(0), "somebody asked for it")
		e.Remove(node(3), time.UnixMilli(1767225800000))
	})
	return map[string]any{
		"init-join":      protocol.InitJoin{Attempt: 3, Claim: claim, Back: true},
		"init-join-ack":  protocol.InitJoinAck{Attempt: 3, Cluster: s.Cluster(), Claim: claim},
		"init-join-nack": protocol.InitJoinNack{Attempt: 3, Member: true, Reason: "leaving", Claim: claim},
		"ask-vote":       protocol.AskVote{Birth: 1893553448061, Basis: claim.Record.Stamp, Settled: true, Claim: claim},
		"vote":           protocol.Vote{Birth: 1893553448061, Granted: true, Reason: "it has just voted"},
		"join-request": protocol.JoinRequest{
			Attempt: 4, Member: joiner, Cluster: s.Cluster(),
			Claim:    claim,
			Settings: []protocol.Setting{{Key: "a", Value: "1", Class: protocol.MustEqual}, {Key: "b", Value: "2", Class: protocol.ShouldEqual}},
		},
		"welcome": protocol.Welcome{Attempt: 4, State: s, Warnings: differences},
		"join-refused": protocol.JoinRefused{
			Attempt: 4, Refusal: protocol.RefusedSettings, Retry: true, Reason: "differs", Differences: differences,
		},
		"heartbeat": protocol.Heartbeat{Sequence: 77, Fingerprint: 0x1122334455667788, Shared: true},
		"heartbeat-reply": protocol.HeartbeatReply{
			Sequence: 77, Known: true, Standing: true, Question: protocol.Question{Sequence: 300, Fingerprint: 0x1122334455667788},
		},
		"ask-standing":         protocol.AskStanding{Sequence: 300},
		"give-standing":        protocol.GiveStanding{Sequence: 300, Known: true, Standing: true, Question: 1500},
		"lend-standing":        protocol.LendStanding{Question: 1500, Standing: true, Proof: 1012 * time.Millisecond, All: 2500 * time.Millisecond},
		"gossip-status":        protocol.GossipStatus{Digest: s.Digest()},
		"gossip-delta":         protocol.GossipDelta{Delta: s.Delta(older.Clock()), Digest: s.FullDigest()},
		"gossip-delta-full":    protocol.GossipDelta{Delta: s.DeltaTo(gossip.Digest{Clock: gossip.ClockRef{Base: 1}}), Digest: s.Digest()},
		"gossip-state":         protocol.GossipState{State: s},
		"exiting-confirmed":    protocol.ExitingConfirmed{},
		"gossip-state-downing": protocol.GossipState{State: switched},
		"ask-downing":          protocol.AskDowning{Question: 9, Strategy: 0xfedcba9876543210, View: 0x123456789abcdef0},
		"downing-answer": protocol.DowningAnswer{Question: 9, Decision: downing.Decision{
			Verdict: downing.KeepSide, Down: []gossip.NodeID{node(1), node(2)}, Reason: "the witness says so",
		}, Error: "the witness is away"},
		"reached": protocol.Reached{Nodes: []gossip.UID{1, 0xfedcba9876543210}},
		"not-member": protocol.NotMember{
			Node: node(5), Status: gossip.Removed, Downed: gossip.Cause{By: node(1), Why: "keep-majority: it is lost"},
		},
		"gossip-state-down": protocol.GossipState{State: downed},
		"gossip-delta-down": protocol.GossipDelta{Delta: downed.Delta(s.Clock()), Digest: downed.FullDigest()},
	}
}

// later returns a state with fields that this release does not know, in each record that keeps them.
func later(s *gossip.State) *gossip.State {
	fields := string(protowire.AppendVarint(protowire.AppendTag(nil, 40, protowire.VarintType), 300))
	fields += string(protowire.AppendString(protowire.AppendTag(nil, 39, protowire.BytesType), "news"))
	joiner := member(6)
	joiner.Unknown = gossip.Unknown{Version: 7, Fields: fields}
	p := s.Edit(node(0), func(e *gossip.Edit) { e.Join(joiner) }).Parts()
	p.Unknown = gossip.Unknown{Version: 3, Fields: fields}
	p.Config.Unknown, p.Downing.Unknown = fields, fields
	s, err := gossip.FromParts(p)
	if err != nil {
		panic(err)
	}
	return s
}

func encode(t require.TestingT, message any) []byte {
	b, err := wire.Codec{}.Append(nil, message)
	require.NoError(t, err)
	return b
}

// requireSame compares messages, states by what they hold.
func requireSame(t require.TestingT, want, got any) {
	require.IsType(t, want, got)
	switch want := want.(type) {
	case protocol.GossipState:
		require.True(t, want.State.Equal(got.(protocol.GossipState).State))
	case protocol.Welcome:
		other := got.(protocol.Welcome)
		require.True(t, want.State.Equal(other.State))
		want.State, other.State = nil, nil
		require.Equal(t, want, other)
	default:
		require.Equal(t, fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got))
	}
	require.Equal(t, encode(t, want0(want)), encode(t, want0(got)))
}

// want0 drops states that were taken out for the comparison.
func want0(message any) any {
	if w, ok := message.(protocol.Welcome); ok && w.State == nil {
		return protocol.Heartbeat{}
	}
	return message
}

func TestMessagesComeBackAsTheyWere(t *testing.T) {
	for name, message := range messages() {
		t.Run(name, func(t *testing.T) {
			got, err := wire.Codec{}.Decode(encode(t, message))
			require.NoError(t, err)
			if d, ok := message.(protocol.GossipDelta); ok {
				requireSameDelta(t, d, got.(protocol.GossipDelta))
				return
			}
			requireSame(t, message, got)
		})
	}
}

// requireSameDelta compares what deltas do, since their printed form holds
// pointers.
func requireSameDelta(t require.TestingT, want, got protocol.GossipDelta) {
	require.Equal(t, want.Digest, got.Digest)
	require.Equal(t, encode(t, want), encode(t, got))
	require.Len(t, got.Delta.Members, len(want.Delta.Members))
	for i := range want.Delta.Members {
		require.Equal(t, *want.Delta.Members[i], *got.Delta.Members[i])
	}
	require.Equal(t, want.Delta.Edits, got.Delta.Edits)
	require.Equal(t, want.Delta.From, got.Delta.From)
	require.Equal(t, want.Delta.Seen, got.Delta.Seen)
}

// Every field of every message, down to the last, is written: a field that the codec
// forgets comes back zero.
func TestNoFieldIsForgotten(t *testing.T) {
	zero := map[string]bool{}
	for name, message := range messages() {
		got, err := wire.Codec{}.Decode(encode(t, message))
		require.NoError(t, err)
		v, w := reflect.ValueOf(message), reflect.ValueOf(got)
		for i := range v.NumField() {
			require.False(t, v.Field(i).IsZero(), "the test sets %s.%s", name, v.Type().Field(i).Name)
			if w.Field(i).IsZero() {
				zero[name+"."+v.Type().Field(i).Name] = true
			}
		}
	}
	require.Empty(t, zero)
}

// The bytes of each message are what they were in every release before.
func TestGoldenBytes(t *testing.T) {
	for name, message := range messages() {
		t.Run(name, func(t *testing.T) {
			machinetest.Bytes(t, filepath.Join("testdata", name+".hex"), *rewrite, encode(t, message))
		})
	}
}

func TestStatesOfRandomHistoriesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := gossip.New(gossip.ClusterID{Born: 1, Nonce: 2})
		two := one
		number := gossip.UpNumber(0)
		for range rapid.IntRange(1, 40).Draw(t, "edits") {
			i, k := rapid.IntRange(0, 7).Draw(t, "self"), rapid.IntRange(0, 7).Draw(t, "of")
			s := &one
			if rapid.Bool().Draw(t, "two") {
				s = &two
			}
			*s = (*s).Edit(node(i), func(e *gossip.Edit) {
				switch rapid.IntRange(0, 6).Draw(t, "type") {
				case 0, 1:
					e.Join(member(k))
				case 2:
					number++
					e.SetStatus(node(k), gossip.Up, number)
				case 3:
					e.Mark(node(k), gossip.Unreachable)
				case 4:
					e.Down(node(k), fmt.Sprint("reason ", number%3))
				case 5:
					e.Remove(node(k), time.UnixMilli(1767225700000))
				default:
					e.SetConfig([]gossip.NodeID{node(k), node(i)})
				}
			})
			*s = (*s).See(node(k))
			if rapid.IntRange(0, 3).Draw(t, "merge") == 0 {
				one = one.Merge(two)
			}
		}
		for _, message := range []any{
			protocol.GossipState{State: one},
			protocol.GossipStatus{Digest: one.Digest()},
			protocol.GossipStatus{Digest: two.FullDigest()},
		} {
			got, err := wire.Codec{}.Decode(encode(t, message))
			require.NoError(t, err)
			requireSame(t, message, got)
		}
		delta := protocol.GossipDelta{Delta: one.DeltaTo(two.FullDigest()), Digest: one.FullDigest()}
		got, err := wire.Codec{}.Decode(encode(t, delta))
		require.NoError(t, err)
		direct, err1 := two.Apply(delta.Delta)
		decoded, err2 := two.Apply(got.(protocol.GossipDelta).Delta)
		require.Equal(t, err1, err2)
		require.True(t, direct.Equal(decoded), "a delta does the same before and after")
	})
}

// covers I23.
func TestStateOfThousandMembersIsSmall(t *testing.T) {
	b := encode(t, protocol.GossipState{State: state(1000)})
	t.Logf("%d bytes, %d a member", len(b), len(b)/1000)
	require.Less(t, len(b), 60_000)
	require.Less(t, len(encode(t, protocol.GossipStatus{Digest: state(1000).Digest()})), 45_000)
}

// A decision about many members is encoded once, and no reason is longer than a state
// takes: what a thousand members can add is bounded.
func TestReasonsDoNotFillTheState(t *testing.T) {
	const why = "keep-majority: 600 of 1000 voters are on this side, 400 members are lost"
	s := state(1000)
	down := func(why func(i int) string) int {
		downed := s.Edit(node(0), func(e *gossip.Edit) {
			for i := range 400 {
				e.Down(node(600+i), why(i))
			}
		})
		return len(encode(t, protocol.GossipState{State: downed}))
	}
	none := down(func(int) string { return "" })
	require.Less(t, none-len(encode(t, protocol.GossipState{State: s})), 400*3)
	require.Less(t, down(func(int) string { return why })-none, len(why)+8)
	each := down(func(i int) string { return fmt.Sprintf("%03d", i) + strings.Repeat(why, 9) }) - none
	t.Logf("%d bytes for 400 reasons of their own", each)
	require.Less(t, each, 400*(gossip.MaxCauseBytes+8))
}

// A version before sends heartbeats without a fingerprint, and this one most of them.
func TestAHeartbeatNeedsNoFingerprint(t *testing.T) {
	before := []byte{0x3a, 0x02, 0x08, 0x4d}
	got, err := wire.Codec{}.Decode(before)
	require.NoError(t, err)
	require.Equal(t, protocol.Heartbeat{Sequence: 77}, got)
	require.Equal(t, before, encode(t, got))
}

// covers B29, B30, I33.
func TestWhatANewerVersionSendsDoesNoHarm(t *testing.T) {
	b := encode(t, protocol.Heartbeat{Sequence: 7})
	b = protowire.AppendTag(b, 500, protowire.BytesType)
	b = protowire.AppendBytes(b, []byte("news"))
	got, err := wire.Codec{}.Decode(b)
	require.NoError(t, err)
	require.Equal(t, protocol.Heartbeat{Sequence: 7}, got)

	unknown := protowire.AppendBytes(protowire.AppendTag(nil, 900, protowire.BytesType), []byte("type"))
	got, err = wire.Codec{}.Decode(unknown)
	require.NoError(t, err)
	require.Equal(t, wire.Unknown{}, got)
	got, err = wire.Codec{}.Decode(nil)
	require.NoError(t, err)
	require.Equal(t, wire.Unknown{}, got)
}

// A farewell of a release that says no cause is what it was, and a reason that is not
// UTF-8 is refused wherever it stands.
func TestReasonsAreTextOrAbsent(t *testing.T) {
	farewell := protocol.NotMember{Node: node(5), Status: gossip.Removed}
	b := encode(t, farewell)
	require.Equal(t, "6a1a0a160a0831302e302e302e35108b3e196a6c747c9f6015171009", hex.EncodeToString(b))
	got, err := wire.Codec{}.Decode(b)
	require.NoError(t, err)
	require.Equal(t, farewell, got)
	for _, name := range []string{"not-member", "gossip-state-down", "gossip-delta-down"} {
		b := encode(t, messages()[name])
		garbled := bytes.Replace(b, []byte("it is lost"), []byte("it \xff\xfe lost"), 1)
		require.NotEqual(t, b, garbled)
		got, err := wire.Codec{}.Decode(garbled)
		require.Nil(t, got)
		requireKnownError(t, err)
	}
}

func TestForeignMessageIsRefused(t *testing.T) {
	_, err := wire.Codec{}.Append(nil, "hello")
	require.ErrorIs(t, err, wire.ErrForeign)
}

// faults are messages that are well formed and wrong. They are also the seeds of the
// fuzzing.
func faults(t testing.TB) map[string]doc {
	gossipOf := func(s fields) doc { return made(t, fields{"gossip_state": fields{"state": s}}) }
	all := messages()
	all["state"] = protocol.GossipState{State: state(4)}
	// within returns what changes the part of a message that is at a path.
	within := func(name, path string) func(pathsAndValues ...any) doc {
		return func(pathsAndValues ...any) doc {
			b, err := wire.Codec{}.Append(nil, all[name])
			require.NoError(t, err)
			m := parsed(t, b)
			for part := m.at(path); len(pathsAndValues) > 0; pathsAndValues = pathsAndValues[2:] {
				part.set(pathsAndValues[0].(string), pathsAndValues[1])
			}
			return m
		}
	}
	change := within("state", "gossip_state.state")
	request := within("join-request", "join_request")
	delta := within("gossip-delta", "gossip_delta.delta")
	loaded := within("gossip-state-downing", "gossip_state.state.records.members.profiles")
	downed := within("gossip-state-down", "gossip_state.state.records.causes")
	more := within("gossip-state-later", "gossip_state.state.records.members")
	farewell := func(by any, why string) doc {
		return made(t, fields{"not_member": fields{
			"node": fields{"host": "a", "port": 1, "uid": 1}, "status": 8, "downed_by": by, "downed_why": why,
		}})
	}
	long := strings.Repeat("x", protocol.MaxTextBytes+1)
	return map[string]doc{
		"B12-no-state-members-of-no-node": gossipOf(fields{"records": fields{"members": fields{"node": []any{0}}}}),
		"B13-empty-host":                  change("nodes.hosts[0]", ""),
		"B13-port":                        change("nodes.port[0]", 70000),
		"B14-uid":                         change("nodes.uid[0]", 0),
		"B15-duplicate":                   change("records.members.node[1]", same("records.members.node[0]")),
		"B16-seen-outside":                change("seen", []byte{0xff, 0xff, 0xff}),
		"B17-clock-unknown":               change("clock.node[0]", 99),
		"B17-clock-counter":               change("clock.count[0]", uint64(math.MaxUint64)),
		"B18-status":                      change("records.members.status[0]", 99),
		"B18-status-wide":                 change("records.members.status[0]", 256+3),
		"B19-up-number":                   change("records.members.up_number[0]", after("records.registers.last_up_number")),
		"B20-row-about-self":              change("records.observers.subject[0]", same("records.observers.observer[0]")),
		"B20-row-status":                  change("records.observers.row_status[0]", 300),
		"B20-rows-left":                   change("records.observers.row_count[0]", 0),
		"B20-rows-missing":                change("records.observers.row_count[0]", uint64(1<<31)),
		"B21-tombstone":                   change("records.tombstones.removed_at[0]", uint64(1<<60)),
		"B22-members":                     change("records.members.node", make([]any, gossip.MaxMembers+1)),
		"columns":                         change("records.members.profile", nil),
		"profile":                         change("records.members.profile[0]", 1000),
		"profile-roles":                   change("records.members.profiles.role_count[0]", 1<<30),
		"profile-services":                change("records.members.profiles.services[0]", 1<<20),
		"profile-left":                    change("records.members.profiles.service_count[0]", less),
		"profile-protocol":                change("records.members.profiles.protocol_max[0]", 1<<20),
		"host":                            change("nodes.host[0]", 1000),
		"hosts":                           change("nodes.hosts", make([]any, 1000)),
		"voter":                           change("records.config.voters[0]", 1000),
		"previous":                        change("records.config.previous", []any{1000}),
		"tombstone-node":                  change("records.tombstones.node[0]", 1000),
		"observer":                        change("records.observers.observer[0]", 1000),
		"subject":                         change("records.observers.subject[0]", 1000),
		"edit-node":                       delta("edits.node[0]", 1000),
		"edit-keys":                       delta("edits.key_count[0]", 1000),
		"edit-keys-left":                  delta("edits.key_count[0]", less),
		"edit-key-node":                   delta("edits.key[0]", uint64(1<<40)),
		"edit-key-type":                   delta("edits.key[0]", 7),
		"delta-full":                      delta("full", true),
		"delta-from":                      delta("from.clock.node", []any{1000}),
		"delta-seen":                      delta("seen", make([]byte, 1000)),
		"join-no-member":                  request("member", nil),
		"join-member":                     request("member.status[0]", 0),
		"join-class":                      request("settings.class[0]", 9),
		"join-order":                      request("settings.key[1]", "a"),
		"join-long":                       request("settings.value[0]", long),
		"loaded-columns":                  loaded("loaded_count", nil),
		"loaded-short":                    loaded("loaded_version", rest(1), "loaded_count", rest(1)),
		"loaded-missing":                  loaded("loaded_count[0]", 1000),
		"loaded-left":                     loaded("loaded_count[0]", less),
		"loaded-order":                    loaded("loaded", reversed),
		"cause-columns":                   downed("why", nil),
		"cause-by":                        downed("by[0]", 1000),
		"cause-of-nobody":                 downed("node", rest(1), "node_count[0]", 0),
		"cause-of-a-stranger":             downed("node[0]", 1000),
		"cause-missing":                   downed("node_count[0]", uint64(1<<31)),
		"cause-left":                      downed("node_count[0]", less),
		"cause-twice":                     downed("node[1]", same("node[0]")),
		"cause-of-one-not-down":           downed("node[0]", 1),
		"cause-long":                      downed("why[0]", strings.Repeat("x", gossip.MaxCauseBytes+1)),
		"cause-control":                   downed("why[0]", "a\x1b[2Jb"),
		"not-member-by":                   farewell(fields{"port": 1 << 20}, ""),
		"not-member-why-of-nobody":        farewell(nil, "lost"),
		"not-member-why-long":             farewell(fields{"host": "a", "port": 1, "uid": 1}, strings.Repeat("x", gossip.MaxCauseBytes+1)),
		"not-member-why-control":          farewell(fields{"host": "a", "port": 1, "uid": 1}, "a\nb"),
		"more-of-nobody":                  more("more_of[0]", 1000),
		"more-columns":                    more("more_of", nil),
		"more-twice":                      more("more_of", []any{0, 0}, "more", []any{fields{"version": 1}, fields{"version": 1}}),
		"more-of-nothing":                 more("more", []any{fields{}}),
		"more-without-a-version":          more("more[0]", keptAs(t, "\xc0\x02\x01")),
		"more-than-fits":                  more("more[0]", keptAs(t, strings.Repeat("\xc0\x02\x01", gossip.MaxUnknownBytes/3+1))),
		"downing-before":                  change("records.registers.downing.previous", fields{"name": long}),
		"answer-error":                    made(t, fields{"downing_answer": fields{"error": long}}),
		"answer-reason":                   made(t, fields{"downing_answer": fields{"reason": long}}),
		"answer-verdict":                  made(t, fields{"downing_answer": fields{"verdict": 256}}),
		"answer-node":                     made(t, fields{"downing_answer": fields{"down": fields{"host": []any{3}}}}),
		"answer-nodes": made(t, fields{"downing_answer": fields{"down": fields{
			"hosts": []any{"a"}, "host": make([]any, gossip.MaxMembers+1),
			"port": make([]any, gossip.MaxMembers+1), "uid": make([]any, gossip.MaxMembers+1),
		}}}),
		"nack-long":    made(t, fields{"init_join_nack": fields{"reason": long}}),
		"refused-long": made(t, fields{"join_refused": fields{"reason": long}}),
		"refused-wide": made(t, fields{"join_refused": fields{"refusal": 256}}),
		"refused-difference": made(t, fields{"join_refused": fields{
			"differences": fields{"key": []any{"k"}, "member": []any{long}, "joiner": []any{""}},
		}}),
		"not-member-status": made(t, fields{"not_member": fields{"node": fields{"host": "a", "port": 1, "uid": 1}, "status": 3}}),
		"not-member-node":   made(t, fields{"not_member": fields{"status": 8}}),
		"not-member-port":   made(t, fields{"not_member": fields{"node": fields{"port": 1 << 20}, "status": 8}}),
	}
}

// covers B12, B13, B14, B15, B16, B17, B18, B19, B20, B21, B22.
func TestFaultyMessagesAreRefused(t *testing.T) {
	for name, m := range faults(t) {
		t.Run(name, func(t *testing.T) {
			b := m.bytes(t)
			got, err := wire.Codec{}.Decode(b)
			require.Error(t, err, "%T", got)
			require.Nil(t, got)
			requireKnownError(t, err)
		})
	}
}

func requireKnownError(t require.TestingT, err error) {
	if !errors.Is(err, wire.ErrMalformed) {
		require.ErrorIs(t, err, gossip.ErrInvalid)
	}
}

// covers B2, B3, B4, B5, B6, B7.
func TestTruncatedAndGarbledBytesAreRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, message := range messages() {
		b := encode(t, message)
		for cut := range len(b) {
			if _, err := (wire.Codec{}).Decode(b[:cut]); err != nil {
				requireKnownError(t, err)
			}
		}
		for range 200 {
			garbled := append([]byte(nil), b...)
			if len(garbled) == 0 {
				continue
			}
			garbled[random.IntN(len(garbled))] ^= byte(1 << random.IntN(8))
			if _, err := (wire.Codec{}).Decode(garbled); err != nil {
				requireKnownError(t, err)
			}
		}
		require.NotEmpty(t, b, name)
	}
	_, err := wire.Codec{}.Decode(make([]byte, wire.MaxSize+1))
	require.ErrorIs(t, err, wire.ErrMalformed)
	_, err = wire.Codec{}.Decode([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	require.ErrorIs(t, err, wire.ErrMalformed)
}

// FuzzDecode proves that nothing makes the codec panic, and that what it
// accepts it writes again so that it reads the same.
func FuzzDecode(f *testing.F) {
	for _, message := range messages() {
		b, err := wire.Codec{}.Append(nil, message)
		require.NoError(f, err)
		f.Add(b)
	}
	for _, m := range faults(f) {
		b := m.bytes(f)
		if len(b) < 4096 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		message, err := wire.Codec{}.Decode(b)
		if err != nil {
			requireKnownError(t, err)
			return
		}
		if message == any(wire.Unknown{}) {
			return
		}
		first, err := wire.Codec{}.Append(nil, message)
		require.NoError(t, err)
		again, err := wire.Codec{}.Decode(first)
		require.NoError(t, err)
		second, err := wire.Codec{}.Append(nil, again)
		require.NoError(t, err)
		require.Equal(t, first, second)
	})
}

func BenchmarkCodec(b *testing.B) {
	for _, n := range []int{10, 1000} {
		message := protocol.GossipState{State: state(n)}
		encoded := encode(b, message)
		b.Run(fmt.Sprintf("append/members=%d", n), func(b *testing.B) {
			buffer := make([]byte, 0, len(encoded))
			b.ReportAllocs()
			b.SetBytes(int64(len(encoded)))
			for b.Loop() {
				if _, err := (wire.Codec{}).Append(buffer[:0], message); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("decode/members=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(encoded)))
			for b.Loop() {
				if _, err := (wire.Codec{}).Decode(encoded); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	heartbeat := encode(b, protocol.HeartbeatReply{Sequence: 1 << 20, Known: true, Standing: true})
	b.Run("decode/heartbeat-reply", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := (wire.Codec{}).Decode(heartbeat); err != nil {
				b.Fatal(err)
			}
		}
	})
}

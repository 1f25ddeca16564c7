// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/machinetest"
	pb "github.com/quorate/quorate/membership/internal/proto/quorate/membership/v1"
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

// messages returns one message of each type, with every field set.
func messages() map[string]any {
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
func faults() map[string]*pb.Message {
	gossipOf := func(s *pb.State) *pb.Message {
		return &pb.Message{What: &pb.Message_GossipState{GossipState: &pb.GossipState{State: s}}}
	}
	change := func(f func(s *pb.State)) *pb.Message {
		b, _ := wire.Codec{}.Append(nil, protocol.GossipState{State: state(4)})
		m := new(pb.Message)
		_ = proto.Unmarshal(b, m)
		f(m.GetGossipState().GetState())
		return m
	}
	request := func(f func(r *pb.JoinRequest)) *pb.Message {
		b, _ := wire.Codec{}.Append(nil, messages()["join-request"])
		m := new(pb.Message)
		_ = proto.Unmarshal(b, m)
		f(m.GetJoinRequest())
		return m
	}
	delta := func(f func(r *pb.Delta)) *pb.Message {
		b, _ := wire.Codec{}.Append(nil, messages()["gossip-delta"])
		m := new(pb.Message)
		_ = proto.Unmarshal(b, m)
		f(m.GetGossipDelta().GetDelta())
		return m
	}
	loaded := func(f func(p *pb.Profiles)) *pb.Message {
		b, _ := wire.Codec{}.Append(nil, messages()["gossip-state-downing"])
		m := new(pb.Message)
		_ = proto.Unmarshal(b, m)
		f(m.GetGossipState().GetState().GetRecords().GetMembers().GetProfiles())
		return m
	}
	downed := func(f func(c *pb.Causes)) *pb.Message {
		b, _ := wire.Codec{}.Append(nil, messages()["gossip-state-down"])
		m := new(pb.Message)
		_ = proto.Unmarshal(b, m)
		f(m.GetGossipState().GetState().GetRecords().GetCauses())
		return m
	}
	farewell := func(by *pb.Node, why string) *pb.Message {
		return &pb.Message{What: &pb.Message_NotMember{NotMember: &pb.NotMember{
			Node: &pb.Node{Host: "a", Port: 1, Uid: 1}, Status: 8, DownedBy: by, DownedWhy: why,
		}}}
	}
	long := strings.Repeat("x", protocol.MaxTextBytes+1)
	return map[string]*pb.Message{
		"B12-no-state-members-of-no-node": gossipOf(&pb.State{Records: &pb.Records{Members: &pb.Members{Node: []uint32{0}}}}),
		"B13-empty-host":                  change(func(s *pb.State) { s.Nodes.Hosts[0] = "" }),
		"B13-port":                        change(func(s *pb.State) { s.Nodes.Port[0] = 70000 }),
		"B14-uid":                         change(func(s *pb.State) { s.Nodes.Uid[0] = 0 }),
		"B15-duplicate":                   change(func(s *pb.State) { s.Records.Members.Node[1] = s.Records.Members.Node[0] }),
		"B16-seen-outside":                change(func(s *pb.State) { s.Seen = []byte{0xff, 0xff, 0xff} }),
		"B17-clock-unknown":               change(func(s *pb.State) { s.Clock.Node[0] = 99 }),
		"B17-clock-counter":               change(func(s *pb.State) { s.Clock.Count[0] = 1<<64 - 1 }),
		"B18-status":                      change(func(s *pb.State) { s.Records.Members.Status[0] = 99 }),
		"B18-status-wide":                 change(func(s *pb.State) { s.Records.Members.Status[0] = 256 + 3 }),
		"B19-up-number":                   change(func(s *pb.State) { s.Records.Members.UpNumber[0] = s.Records.Registers.LastUpNumber + 1 }),
		"B20-row-about-self":              change(func(s *pb.State) { s.Records.Observers.Subject[0] = s.Records.Observers.Observer[0] }),
		"B20-row-status":                  change(func(s *pb.State) { s.Records.Observers.RowStatus[0] = 300 }),
		"B20-rows-left":                   change(func(s *pb.State) { s.Records.Observers.RowCount[0] = 0 }),
		"B20-rows-missing":                change(func(s *pb.State) { s.Records.Observers.RowCount[0] = 1 << 31 }),
		"B21-tombstone":                   change(func(s *pb.State) { s.Records.Tombstones.RemovedAt[0] = 1 << 60 }),
		"B22-members":                     change(func(s *pb.State) { s.Records.Members.Node = make([]uint32, gossip.MaxMembers+1) }),
		"columns":                         change(func(s *pb.State) { s.Records.Members.Profile = nil }),
		"profile":                         change(func(s *pb.State) { s.Records.Members.Profile[0] = 1000 }),
		"profile-roles":                   change(func(s *pb.State) { s.Records.Members.Profiles.RoleCount[0] = 1 << 30 }),
		"profile-services":                change(func(s *pb.State) { s.Records.Members.Profiles.Services[0] = 1 << 20 }),
		"profile-left":                    change(func(s *pb.State) { s.Records.Members.Profiles.ServiceCount[0]-- }),
		"profile-protocol":                change(func(s *pb.State) { s.Records.Members.Profiles.ProtocolMax[0] = 1 << 20 }),
		"host":                            change(func(s *pb.State) { s.Nodes.Host[0] = 1000 }),
		"hosts":                           change(func(s *pb.State) { s.Nodes.Hosts = make([]string, 1000) }),
		"voter":                           change(func(s *pb.State) { s.Records.Config.Voters[0] = 1000 }),
		"previous":                        change(func(s *pb.State) { s.Records.Config.Previous = []uint32{1000} }),
		"tombstone-node":                  change(func(s *pb.State) { s.Records.Tombstones.Node[0] = 1000 }),
		"observer":                        change(func(s *pb.State) { s.Records.Observers.Observer[0] = 1000 }),
		"subject":                         change(func(s *pb.State) { s.Records.Observers.Subject[0] = 1000 }),
		"edit-node":                       delta(func(d *pb.Delta) { d.Edits.Node[0] = 1000 }),
		"edit-keys":                       delta(func(d *pb.Delta) { d.Edits.KeyCount[0] = 1000 }),
		"edit-keys-left":                  delta(func(d *pb.Delta) { d.Edits.KeyCount[0]-- }),
		"edit-key-node":                   delta(func(d *pb.Delta) { d.Edits.Key[0] = 1 << 40 }),
		"edit-key-type":                   delta(func(d *pb.Delta) { d.Edits.Key[0] = 7 }),
		"delta-full":                      delta(func(d *pb.Delta) { d.Full = true }),
		"delta-from":                      delta(func(d *pb.Delta) { d.From.Clock.Node = []uint32{1000} }),
		"delta-seen":                      delta(func(d *pb.Delta) { d.Seen = make([]byte, 1000) }),
		"join-no-member":                  request(func(r *pb.JoinRequest) { r.Member = nil }),
		"join-member":                     request(func(r *pb.JoinRequest) { r.Member.Status[0] = 0 }),
		"join-class":                      request(func(r *pb.JoinRequest) { r.Settings.Class[0] = 9 }),
		"join-order":                      request(func(r *pb.JoinRequest) { r.Settings.Key[1] = "a" }),
		"join-long":                       request(func(r *pb.JoinRequest) { r.Settings.Value[0] = long }),
		"loaded-columns":                  loaded(func(p *pb.Profiles) { p.LoadedCount = nil }),
		"loaded-short":                    loaded(func(p *pb.Profiles) { p.LoadedVersion, p.LoadedCount = p.LoadedVersion[1:], p.LoadedCount[1:] }),
		"loaded-missing":                  loaded(func(p *pb.Profiles) { p.LoadedCount[0] = 1000 }),
		"loaded-left":                     loaded(func(p *pb.Profiles) { p.LoadedCount[0]-- }),
		"loaded-order":                    loaded(func(p *pb.Profiles) { p.Loaded[0], p.Loaded[1] = p.Loaded[1], p.Loaded[0] }),
		"cause-columns":                   downed(func(c *pb.Causes) { c.Why = nil }),
		"cause-by":                        downed(func(c *pb.Causes) { c.By[0] = 1000 }),
		"cause-of-nobody":                 downed(func(c *pb.Causes) { c.NodeCount[0], c.Node = 0, c.Node[c.NodeCount[0]:] }),
		"cause-of-a-stranger":             downed(func(c *pb.Causes) { c.Node[0] = 1000 }),
		"cause-missing":                   downed(func(c *pb.Causes) { c.NodeCount[0] = 1 << 31 }),
		"cause-left":                      downed(func(c *pb.Causes) { c.NodeCount[0]-- }),
		"cause-twice":                     downed(func(c *pb.Causes) { c.Node[1] = c.Node[0] }),
		"cause-of-one-not-down":           downed(func(c *pb.Causes) { c.Node[0] = 1 }),
		"cause-long":                      downed(func(c *pb.Causes) { c.Why[0] = strings.Repeat("x", gossip.MaxCauseBytes+1) }),
		"cause-control":                   downed(func(c *pb.Causes) { c.Why[0] = "a\x1b[2Jb" }),
		"not-member-by":                   farewell(&pb.Node{Port: 1 << 20}, ""),
		"not-member-why-of-nobody":        farewell(nil, "lost"),
		"not-member-why-long":             farewell(&pb.Node{Host: "a", Port: 1, Uid: 1}, strings.Repeat("x", gossip.MaxCauseBytes+1)),
		"not-member-why-control":          farewell(&pb.Node{Host: "a", Port: 1, Uid: 1}, "a\nb"),
		"downing-before": change(func(s *pb.State) {
			s.Records.Registers.Downing.Previous = &pb.DowningStrategy{Name: long}
		}),
		"answer-error":   {What: &pb.Message_DowningAnswer{DowningAnswer: &pb.DowningAnswer{Error: long}}},
		"answer-reason":  {What: &pb.Message_DowningAnswer{DowningAnswer: &pb.DowningAnswer{Reason: long}}},
		"answer-verdict": {What: &pb.Message_DowningAnswer{DowningAnswer: &pb.DowningAnswer{Verdict: 256}}},
		"answer-node":    {What: &pb.Message_DowningAnswer{DowningAnswer: &pb.DowningAnswer{Down: &pb.Nodes{Host: []uint32{3}}}}},
		"answer-nodes": {What: &pb.Message_DowningAnswer{DowningAnswer: &pb.DowningAnswer{Down: &pb.Nodes{
			Hosts: []string{"a"}, Host: make([]uint32, gossip.MaxMembers+1),
			Port: make([]uint32, gossip.MaxMembers+1), Uid: make([]uint64, gossip.MaxMembers+1),
		}}}},
		"nack-long":    {What: &pb.Message_InitJoinNack{InitJoinNack: &pb.InitJoinNack{Reason: long}}},
		"refused-long": {What: &pb.Message_JoinRefused{JoinRefused: &pb.JoinRefused{Reason: long}}},
		"refused-wide": {What: &pb.Message_JoinRefused{JoinRefused: &pb.JoinRefused{Refusal: 256}}},
		"refused-difference": {What: &pb.Message_JoinRefused{JoinRefused: &pb.JoinRefused{
			Differences: &pb.Differences{Key: []string{"k"}, Member: []string{long}, Joiner: []string{""}},
		}}},
		"not-member-status": {What: &pb.Message_NotMember{NotMember: &pb.NotMember{Node: &pb.Node{Host: "a", Port: 1, Uid: 1}, Status: 3}}},
		"not-member-node":   {What: &pb.Message_NotMember{NotMember: &pb.NotMember{Status: 8}}},
		"not-member-port":   {What: &pb.Message_NotMember{NotMember: &pb.NotMember{Node: &pb.Node{Port: 1 << 20}, Status: 8}}},
	}
}

// covers B12, B13, B14, B15, B16, B17, B18, B19, B20, B21, B22.
func TestFaultyMessagesAreRefused(t *testing.T) {
	for name, m := range faults() {
		t.Run(name, func(t *testing.T) {
			b, err := proto.Marshal(m)
			require.NoError(t, err)
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
	_, err := wire.Codec{}.Decode(make([]byte, wire.SizeMax+1))
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
	for _, m := range faults() {
		b, err := proto.Marshal(m)
		require.NoError(f, err)
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

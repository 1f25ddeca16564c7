// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"io"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/wire"
	"github.com/quorate/quorate/transport/session"
)

// One endpoint and a peer that answers whatever a test wants (liar): answers that make no
// sense, refusals in any name, and the memory of sessions that have ended; last services
// and identities that are refused.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// liar is the other end of every pipe: it answers the n-th message with the n-th of
// its answers.
type liar struct {
	answers [][]byte
	ch      chan []byte
	once    sync.Once
	closed  chan struct{}
}

func (l *liar) Dial(context.Context, gossip.Address, transport.LaneClass) (session.Pipe, error) {
	return &liar{answers: l.answers, ch: make(chan []byte, len(l.answers)), closed: make(chan struct{})}, nil
}

func (l *liar) Send(b *wire.Buffer) error {
	b.Free()
	if len(l.answers) > 0 {
		l.ch <- l.answers[0]
		l.answers = l.answers[1:]
	}
	return nil
}

func (l *liar) Recv(in *session.Incoming) error {
	select {
	case b := <-l.ch:
		if b == nil {
			return session.ErrOversize
		}
		in.Bytes = b
		return nil
	case <-l.closed:
		return io.EOF
	}
}

func (l *liar) Close() { l.once.Do(func() { close(l.closed) }) }

func at(port uint16, uid gossip.UID) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: "127.0.0.1", Port: port}, UID: uid}
}

// An answer of a peer, however wrong, does no more than end the session with a typed and
// counted refusal.
func TestAnswersThatMakeNoSenseEndTheSession(t *testing.T) {
	peer := at(2, 2)
	welcome := func(w wire.Welcome) []byte {
		b := wire.AppendWelcome(nil, w)
		return b
	}
	good := welcome(wire.Welcome{Node: peer, Protocol: 1, Known: true})
	ack, _ := wire.AppendReceipt(nil, 9, nil)
	tests := []struct {
		name    string
		answers [][]byte
		reason  transport.Reason
	}{
		{"garbage", [][]byte{{0xff}}, transport.ReasonMalformed},
		{"a receipt for a hello", [][]byte{ack}, transport.ReasonMalformed},
		{"another incarnation", [][]byte{welcome(wire.Welcome{Node: at(2, 3), Protocol: 1, Known: true})}, transport.ReasonIncarnation},
		{"another address", [][]byte{welcome(wire.Welcome{Node: at(3, 2), Protocol: 1, Known: true})}, transport.ReasonIncarnation},
		{"a version not offered", [][]byte{welcome(wire.Welcome{Node: peer, Protocol: 9, Known: true})}, transport.ReasonProtocol},
		{"a new session unknown", [][]byte{welcome(wire.Welcome{Node: peer, Protocol: 1})}, transport.ReasonMalformed},
		{"frames that were never sent", [][]byte{welcome(wire.Welcome{Node: peer, Protocol: 1, Known: true, Acknowledged: 5})}, transport.ReasonMalformed},
		{"an acknowledgement too high", [][]byte{good, ack}, transport.ReasonMalformed},
		{"a second welcome", [][]byte{good, good}, transport.ReasonMalformed},
		{"garbage in a session", [][]byte{good, {0xff}}, transport.ReasonMalformed},
		{"an answer above the limit", [][]byte{good, nil}, transport.ReasonMalformed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { lie(t, peer, test.answers, test.reason) })
		})
	}
}

// deceived begins an endpoint whose peers give these answers, and returns its notices of
// one type.
func deceived[N transport.Notice](t *testing.T, answers [][]byte) (*session.Endpoint, <-chan N) {
	t.Helper()
	notices := make(chan N, 8)
	e, err := session.New(transport.Identity{
		Node: at(1, 1), Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1},
	}, transport.Default(), &liar{answers: answers}, func(n transport.Notice) {
		if n, ok := n.(N); ok {
			notices <- n
		}
	})
	require.NoError(t, err)
	require.True(t, e.Begin())
	return e, notices
}

func lie(t *testing.T, peer gossip.NodeID, answers [][]byte, reason transport.Reason) {
	t.Helper()
	e, downs := deceived[transport.PeerDown](t, answers)
	lane := e.Lane(peer, machine.LaneControl)
	encode := func(b []byte) []byte { return append(b, 1) }
	require.NoError(t, lane.Append(1, encode))
	down := <-downs
	var refused *transport.RefusedError
	require.ErrorAs(t, down.Err, &refused)
	require.Equal(t, reason, refused.Reason)
	require.Equal(t, 1, down.Lost)
	require.Equal(t, uint64(1), e.Counters().RefusedOutbound[reason])
	synctest.Wait()
	require.ErrorAs(t, lane.Append(1, encode), &refused, "refused for a while")
	require.NoError(t, lane.Room(t.Context()), "which passes")
	require.NoError(t, lane.Append(1, encode))
	e.Shutdown()
	e.Wait()
}

// A refusal counts as one of the dialled node, whatever name is in it, and at any point of
// the conversation.
//
// covers B25.
func TestARefusalIsThatOfWhoWasDialled(t *testing.T) {
	peer, self, third := at(2, 2), at(1, 1), at(9, 9)
	good := wire.AppendWelcome(nil, wire.Welcome{Node: peer, Protocol: 1, Known: true})
	for name, before := range map[string][][]byte{"for the handshake": nil, "in a session": {good}} {
		for _, claimed := range []gossip.NodeID{self, third, peer} {
			refusal := wire.AppendRefusal(nil, claimed, &transport.RefusedError{Reason: transport.ReasonBlocked, Detail: "gone"})
			t.Run(name+" by "+claimed.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					refuseAs(t, peer, claimed, append(slices.Clone(before), refusal))
				})
			})
		}
	}
}

func refuseAs(t *testing.T, peer, claimed gossip.NodeID, answers [][]byte) {
	t.Helper()
	e, heard := deceived[transport.Refused](t, answers)
	require.NoError(t, e.Lane(peer, machine.LaneControl).Append(1, func(b []byte) []byte { return append(b, 1) }))
	r := <-heard
	require.Equal(t, peer, r.Node)
	require.Equal(t, peer, r.Err.Peer)
	require.Equal(t, peer.Address.String(), r.Address)
	require.Equal(t, transport.ReasonBlocked, r.Err.Reason)
	require.Contains(t, r.Err.Error(), claimed.String(), "people see what it calls itself")
	e.Shutdown()
	e.Wait()
}

// The refusal of a peer that was dialled by address alone names that address, with no
// uid.
func TestARefusalOfAnAddressHasNoUID(t *testing.T) {
	refusal := wire.AppendRefusal(nil, at(2, 2), &transport.RefusedError{Reason: transport.ReasonBlocked, Detail: "gone"})
	synctest.Test(t, func(t *testing.T) {
		heard := make(chan transport.Refused, 1)
		e, err := session.New(transport.Identity{
			Node: at(1, 1), Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1},
		}, transport.Default(), &liar{answers: [][]byte{refusal}}, func(n transport.Notice) { heard <- n.(transport.Refused) })
		require.NoError(t, err)
		require.True(t, e.Begin())
		_, err = e.Probe(t.Context(), at(2, 2).Address, nil)
		require.Error(t, err)
		require.Equal(t, gossip.NodeID{Address: at(2, 2).Address}, (<-heard).Node)
		e.Shutdown()
		e.Wait()
	})
}

// The record of a session keeps no connection alive that has ended: many strangers that
// come and go would otherwise fill the memory.
//
// covers I36.
func TestTheRecordOfASessionHoldsNoConnection(t *testing.T) {
	e, err := session.New(transport.Identity{
		Node: at(1, 1), Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1},
	}, transport.Default(), &liar{}, nil)
	require.NoError(t, err)
	require.True(t, e.Begin())
	hello := wire.AppendHello(nil, wire.Hello{
		Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1}, From: at(2, 2), To: at(1, 1), Lane: machine.LaneControl, Session: 1, Token: tokenOf("real"),
	})
	gone := func() weak.Pointer[liar] {
		p := &liar{ch: make(chan []byte, 1), closed: make(chan struct{})}
		p.ch <- hello
		over := make(chan struct{})
		go func() { // Ends when the connection has ended, which is waited for below.
			defer close(over)
			e.Serve(p, session.Caller{Address: "127.0.0.1:2", Admitted: func() { p.Close() }})
		}()
		<-over
		return weak.Make(p)
	}()
	require.Equal(t, uint64(1), e.Counters().Accepts)
	e.Shutdown()
	e.Wait()
	runtime.GC()
	require.Nil(t, gone.Value())
	runtime.KeepAlive(e)
}

func TestAServiceHasOneHandler(t *testing.T) {
	e, err := session.New(transport.Identity{
		Node: at(1, 1), Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1},
	}, transport.Default(), &liar{}, nil)
	require.NoError(t, err)
	h := func(gossip.NodeID, []byte) {}
	e.Handle(1, h)
	require.Panics(t, func() { e.Handle(1, h) })
	require.Panics(t, func() { e.Handle(0, h) })
	require.Panics(t, func() { e.Handle(2, nil) })
	require.True(t, e.Begin())
	require.False(t, e.Begin())
	require.NotPanics(t, func() { e.Handle(3, h) }, "also after the start")
	require.Panics(t, func() { e.Handle(3, h) })
	e.Shutdown()
	e.Wait()
}

func TestFaultsOfAnIdentityAreReportedTogether(t *testing.T) {
	_, err := session.New(transport.Identity{}, transport.Default(), &liar{}, nil)
	for _, what := range []string{"address", "uid", "cluster name", "protocol range"} {
		require.ErrorContains(t, err, what)
	}
}

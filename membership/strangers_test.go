// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
)

func visitor(uid gossip.UID) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: "10.0.0.9", Port: 7946}, UID: uid}
}

// atGate runs a test of the frames of strangers, in virtual time.
func atGate(t *testing.T, f func(t *testing.T, s *strangerFilter, log *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f(t, &strangerFilter{
			log: slog.New(slog.NewTextHandler(&log, nil)),
			source: func(gossip.NodeID) transport.Source {
				return transport.Source{Address: "10.0.0.9:55555", Certificate: "CN=mallory"}
			},
		}, &log)
	})
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// What a stranger sends reaches no handler. It is counted, and logged once in a while
// with its sender. covers I35.
func TestAStrangerIsKeptOut(t *testing.T) {
	atGate(t, func(t *testing.T, s *strangerFilter, log *bytes.Buffer) {
		h := s.keepOut(7, func(gossip.NodeID, []byte) { t.Error("a handler was called") })
		for range 3 {
			h(visitor(1), nil)
		}
		pass(strangerGrace)
		require.EqualValues(t, 3, s.count.Load())
		require.Contains(t, log.String(), "peer=10.0.0.9:7946#1 address=10.0.0.9:55555 certificate=\"CN=mallory\" service=7 count=3")
		h(visitor(1), nil)
		h(visitor(1), nil)
		pass(strangerEvery)
		require.Equal(t, 2, strings.Count(log.String(), "\n"))
		pass(strangerEvery)
		require.Equal(t, 2, strings.Count(log.String(), "\n"))
		require.Empty(t, s.seen, "whoever is silent is forgotten")
	})
}

// A stranger that sends without pause is logged once a minute.
func TestAStrangerThatGoesOnIsFewLines(t *testing.T) {
	atGate(t, func(t *testing.T, s *strangerFilter, log *bytes.Buffer) {
		h := s.keepOut(7, func(gossip.NodeID, []byte) { t.Error("a handler was called") })
		for range 3 * 60 {
			h(visitor(1), nil)
			pass(time.Second)
		}
		require.Equal(t, 3, strings.Count(log.String(), "\n"))
		s.end()
	})
}

// Frames of a node that has become a member by the time of the line, because news of it
// was late, or of a removed node, are counted but not logged.
func TestLateNewsOfAMemberIsNoStranger(t *testing.T) {
	atGate(t, func(t *testing.T, s *strangerFilter, log *bytes.Buffer) {
		got := 0
		h := s.keepOut(7, func(gossip.NodeID, []byte) { got++ })
		h(visitor(1), nil)
		s.learn(gossip.New(gossip.ClusterID{Born: 1, Nonce: 1}).Edit(visitor(1), func(e *gossip.Edit) {
			require.True(t, e.Join(gossip.Member{Node: visitor(1)}))
		}))
		h(visitor(1), nil)
		require.Equal(t, 1, got)
		pass(2 * strangerGrace)
		require.Empty(t, log.String())
		require.Empty(t, s.seen)
	})
}

// Frames of a node wait for the news that it has joined. When that does not come they are
// dropped, and from then on at once.
func TestFramesWaitForTheNewsOfTheirSender(t *testing.T) {
	atGate(t, func(t *testing.T, s *strangerFilter, _ *bytes.Buffer) {
		var got []time.Duration
		began := time.Now()
		h := s.keepWaiting(t.Context(), 7, func(gossip.NodeID, []byte) { got = append(got, time.Since(began)) })
		go h(visitor(1), nil)
		pass(time.Second)
		require.Empty(t, got)
		s.learn(gossip.New(gossip.ClusterID{Born: 1, Nonce: 1}))
		s.learn(gossip.New(gossip.ClusterID{Born: 1, Nonce: 1}).Edit(visitor(1), func(e *gossip.Edit) {
			require.True(t, e.Join(gossip.Member{Node: visitor(1)}))
		}))
		synctest.Wait()
		require.Equal(t, []time.Duration{time.Second}, got)
		began = time.Now()
		h(visitor(2), nil)
		require.Equal(t, strangerPatience, time.Since(began))
		h(visitor(2), nil)
		require.Equal(t, strangerPatience, time.Since(began), "nobody waits for it twice")
		require.EqualValues(t, 2, s.count.Load())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.keepWaiting(ctx, 7, nil)(visitor(3), nil)
		require.Equal(t, strangerPatience, time.Since(began), "a node that ends waits for nobody")
		require.Len(t, got, 1)
		s.end()
	})
}

// However many identities a stranger has, little is remembered, and all is counted.
func TestStrangersAreBounded(t *testing.T) {
	atGate(t, func(t *testing.T, s *strangerFilter, log *bytes.Buffer) {
		h := s.keepOut(7, func(gossip.NodeID, []byte) { t.Error("a handler was called") })
		for i := range 10 * maxStrangers {
			h(visitor(gossip.UID(i+1)), nil)
		}
		require.Len(t, s.seen, maxStrangers)
		require.EqualValues(t, 10*maxStrangers, s.count.Load())
		s.end()
		pass(2 * strangerGrace)
		require.Empty(t, log.String(), "a node that has ended says nothing")
	})
}

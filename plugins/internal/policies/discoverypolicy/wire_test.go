// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discoverypolicy_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/policies/discoverypolicy"
	"github.com/quorate/quorate/plugins/internal/wire"
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Queries and contact points go over the wire and arrive as they were. Then come those that
// are refused. Last, reasons are cut, and the largest answer fits.

// drawn returns contact points of every form: names, addresses of both versions, names with
// an address, with and without a port.
func drawn(seed uint64) discovery.Targets {
	r := rand.New(rand.NewPCG(seed, 0x11))
	found := discovery.Targets{Reason: fmt.Sprintf("drawn by %d", seed), TTL: time.Duration(r.Int64N(int64(time.Hour)))}
	for i := range r.IntN(20) {
		t := discovery.Target{Host: fmt.Sprintf("host-%d.example", i), Port: uint16(r.IntN(1 << 16))}
		switch r.IntN(3) {
		case 0:
			t.IP = netip.AddrFrom4([4]byte{10, 0, byte(i), byte(r.IntN(256))})
		case 1:
			t.IP = netip.AddrFrom16([16]byte{0x20, 1, 15: byte(i)})
			t.Host = t.IP.String()
		}
		found.List = append(found.List, t)
	}
	return found
}

// targetsFromProto sends an answer over the wire.
func targetsFromProto(p *pluginv1.LookupResponse) (discovery.Targets, error) {
	b, err := proto.Marshal(p)
	if err != nil {
		return discovery.Targets{}, err
	}
	return discoverypolicy.DecodeTargets(b)
}

func TestContactPointsArriveAsTheyWere(t *testing.T) {
	for seed := range uint64(500) {
		found := drawn(seed)
		p, err := discoverypolicy.TargetsToProto(&found)
		require.NoError(t, err, "seed %d", seed)
		got, err := targetsFromProto(wiretest.Over(t, p, &pluginv1.LookupResponse{}))
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, found, got, "seed %d", seed)
	}
}

func TestQueriesArriveAsTheyWere(t *testing.T) {
	for _, q := range []discovery.Query{{}, {Service: "bank", Port: "management", Protocol: "tcp"}, {Service: strings.Repeat("ß", 128)}} {
		r, err := discoverypolicy.QueryToProto(&q)
		require.NoError(t, err)
		got, err := discoverypolicy.QueryFromProto(wiretest.Over(t, r, &pluginv1.LookupRequest{}))
		require.NoError(t, err)
		require.Equal(t, q, got)
	}
	long := strings.Repeat("s", 257)
	for _, q := range []discovery.Query{{Service: long}, {Port: long}, {Protocol: long}, {Service: "\xff"}} {
		_, err := discoverypolicy.QueryToProto(&q)
		require.ErrorIs(t, err, wire.ErrMalformed)
	}
	_, err := discoverypolicy.QueryFromProto(&pluginv1.LookupRequest{Service: long})
	require.ErrorIs(t, err, wire.ErrMalformed)
}

// A method that finds what is no contact point is at fault, and nothing of its answer is sent.
func TestContactPointsAreHeldAgainstTheContract(t *testing.T) {
	one := discovery.Target{Host: "a", Port: 1}
	for name, found := range map[string]discovery.Targets{
		"twice":     {List: []discovery.Target{one, one}},
		"no host":   {List: []discovery.Target{{Port: 1}}},
		"upper":     {List: []discovery.Target{{Host: "A", Port: 1}}},
		"negative":  {TTL: -1},
		"other IP":  {List: []discovery.Target{{Host: "10.0.0.1", IP: netip.MustParseAddr("10.0.0.2")}}},
		"too great": {List: make([]discovery.Target, discovery.MaxTargets+1)},
	} {
		_, err := discoverypolicy.TargetsToProto(&found)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
	for name, change := range map[string]func(*pluginv1.LookupResponse){
		"port":      func(p *pluginv1.LookupResponse) { p.Port[0] = 1 << 16 },
		"port cut":  func(p *pluginv1.LookupResponse) { p.Port[0] = 1<<16 + 1 },
		"ip":        func(p *pluginv1.LookupResponse) { p.Ip[0] = []byte{1, 2, 3} },
		"mapped":    func(p *pluginv1.LookupResponse) { p.Ip[0] = []byte{10: 0xff, 11: 0xff, 15: 1} },
		"everybody": func(p *pluginv1.LookupResponse) { p.Ip[0] = make([]byte, 4) },
		"host":      func(p *pluginv1.LookupResponse) { p.Host[0] = "a:1" },
		"empty":     func(p *pluginv1.LookupResponse) { p.Host[0] = "" },
		"twice":     func(p *pluginv1.LookupResponse) { p.Host[1], p.Port[1], p.Ip[1] = p.Host[0], p.Port[0], p.Ip[0] },
		"columns":   func(p *pluginv1.LookupResponse) { p.Port = p.Port[1:] },
		"ttl":       func(p *pluginv1.LookupResponse) { p.TtlNanos = -1 },
		"reason":    func(p *pluginv1.LookupResponse) { p.Reason = strings.Repeat("r", wire.MaxTextBytes+1) },
		"many": func(p *pluginv1.LookupResponse) {
			n := discovery.MaxTargets + 1
			p.Host, p.Port, p.Ip = make([]string, n), make([]uint32, n), make([][]byte, n)
		},
	} {
		p, err := discoverypolicy.TargetsToProto(&discovery.Targets{List: []discovery.Target{one, {Host: "b", Port: 2}}})
		require.NoError(t, err)
		change(p)
		_, err = targetsFromProto(p)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
}

// A reason that is too long is cut, not refused: it is for people, and decides nothing.
func TestLongReasonsAreCut(t *testing.T) {
	p, err := discoverypolicy.TargetsToProto(&discovery.Targets{Reason: "a\n" + strings.Repeat("r", wire.MaxTextBytes)})
	require.NoError(t, err)
	require.Len(t, p.GetReason(), wire.MaxTextBytes)
	require.NotContains(t, p.GetReason(), "\n")
}

// The largest answer fits into the limit of an answer.
func TestTheLargestAnswerFits(t *testing.T) {
	var found discovery.Targets
	for i := range discovery.MaxTargets {
		host := strings.Repeat(strings.Repeat("h", 60)+".", 4)[:236] + fmt.Sprintf("%08d", i) + "h"
		found.List = append(found.List, discovery.Target{Host: host, Port: 7946, IP: netip.AddrFrom16([16]byte{0x20, 1, 13: 1, 14: byte(i >> 8), 15: byte(i)})})
	}
	p, err := discoverypolicy.TargetsToProto(&found)
	require.NoError(t, err)
	require.Less(t, proto.Size(p), plugins.MaxAnswerBytes)
}

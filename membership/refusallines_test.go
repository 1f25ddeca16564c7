// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/memory"
)

// gate is a transport into which a test says what a peer sends and is refused for. It
// knows where the peer connects from.
type gate struct {
	transport.Transport

	frames  transport.Handler // Of membership.
	notices func(transport.Notice)
}

func (g *gate) Handle(s transport.Service, h transport.Handler) {
	if s == protocol.Service {
		g.frames = h
	}
	g.Transport.Handle(s, h)
}

func (*gate) Source(gossip.NodeID) transport.Source {
	return transport.Source{Address: "10.0.0.9:55555", Certificate: "CN=mallory"}
}

// guarded starts a lone node behind a gate.
func guarded(p *place, log *lines) *gate {
	p.t.Helper()
	g := new(gate)
	n := p.start(config(1), membership.WithLogger(slog.New(slog.NewTextHandler(log, nil))),
		membership.WithTransport(func(id transport.Identity, cfg transport.Config, notices func(transport.Notice)) (transport.Transport, error) {
			var err error
			g.notices = notices
			g.Transport, err = memory.New(p.network, id, cfg, memory.WithNotices(notices))
			return g, err
		}))
	p.awaitUp(n)
	return g
}

// linesWith returns the lines of a log in which a text is.
func linesWith(log *lines, text string) []string {
	var found []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// Whatever a peer is refused for, the line names its address and its certificate, and is
// written once in a minute however often it tries.
func TestARefusalIsSaidOnceAWhileWithWhoWasRefused(t *testing.T) {
	mallory := gossip.NodeID{Address: address(9), UID: 9}
	for what, try := range map[string]func(g *gate){
		"message dropped": func(g *gate) { g.frames(mallory, []byte("garbage")) },
		"JoinRequest of 10.0.0.9:7946#9 is refused": func(g *gate) {
			g.frames(mallory, encoded(t, protocol.JoinRequest{Attempt: 1, Member: gossip.Member{
				Node: gossip.NodeID{Address: address(8), UID: 8}, Status: gossip.Joining,
			}}))
		},
		"connection refused": func(g *gate) {
			g.notices(transport.Refused{
				Address: "10.0.0.9:55555", Node: mallory, Certificate: "CN=mallory", Inbound: true,
				Err: &transport.RefusedError{Reason: transport.ReasonBlocked, Peer: mallory, Detail: "it is removed"},
			})
		},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, p *place) {
				log := new(lines)
				g := guarded(p, log)
				for minute := range 3 {
					for range 10 {
						try(g)
						<-time.After(time.Second)
					}
					said := linesWith(log, what)
					require.Len(t, said, minute+1)
					require.Contains(t, said[minute], "10.0.0.9:55555")
					require.Contains(t, said[minute], "CN=mallory")
					<-time.After(time.Minute)
				}
			})
		})
	}
}

// Nobody can fill the log with services for which there is no handler: a host has a few
// lines in a minute, whatever it sends, and each names who sends.
func TestUnhandledServicesAreFewLines(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		log := new(lines)
		g := guarded(p, log)
		for minute := range 3 {
			for service := range transport.Service(5000) {
				peer := gossip.NodeID{Address: gossip.Address{Host: "10.0.0.9", Port: uint16(1 + service%10)}, UID: gossip.UID(1 + service)}
				g.notices(transport.Unhandled{Peer: peer, Service: 5000 + service, Inbound: true})
			}
			said := linesWith(log, "no handler for service")
			require.Len(t, said, 8*(minute+1))
			for _, line := range said {
				require.Contains(t, line, "10.0.0.9:55555")
				require.Contains(t, line, "CN=mallory")
			}
			<-time.After(time.Minute)
		}
	})
}

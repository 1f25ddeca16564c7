// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"net"
	"net/http"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// What tests use of the bounded listener, and of how answers are made.
var (
	Begin     = func(c net.Conn) (ended func()) { return occupy(withPlace(context.Background(), c)) }
	MembersOf = membersOf
	Select    = selectDecisions
	Unready   = func(self *gossip.Member, standing bool) []string { return unready(self, standing) }
)

// Handler returns the handler of a server, without a listener.
func Handler(cfg Config, routes []Route, opts ...Option) (http.Handler, error) {
	s, err := newServer(cfg, routes, opts)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(s.serve), nil
}

// ServeOn is Serve with a listener that a test has made.
func ServeOn(l net.Listener, cfg Config, routes []Route, opts ...Option) (*Server, error) {
	s, err := newServer(cfg, routes, opts)
	if err != nil {
		return nil, err
	}
	if err := s.start(l); err != nil {
		return nil, err
	}
	return s, nil
}

// DecisionOf is a decision of membership.
type DecisionOf = membership.Decision

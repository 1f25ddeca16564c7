// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/wire"
)

// secret is what this process alone knows. It makes the tokens that the process shows
// to others, each of them another one, so that none can show it to a third.
type secret [32]byte

func newSecret() secret {
	var s secret
	_, _ = rand.Read(s[:]) // Never fails, by its documentation.
	return s
}

// token returns the token for a peer.
func (s *secret) token(peer gossip.NodeID) wire.Token {
	mac := hmac.New(sha256.New, s[:])
	_, _ = mac.Write([]byte(peer.String())) // Never fails.
	return wire.Token(mac.Sum(nil)[:len(wire.Token{})])
}

// made reports whether a token is the one of this process for a peer.
func (s *secret) made(peer gossip.NodeID, t wire.Token) bool {
	own := s.token(peer)
	return hmac.Equal(own[:], t[:])
}

// tenure is how a record of a peer is held by connections. Guarded by Endpoint.mu.
type tenure struct {
	users int       // Connections that hold the record.
	left  time.Time // When the last of them went.
	known bool      // The peer was known then, see transport.Identity.
}

func (t *tenure) held() *tenure { return t }

func (t *tenure) leave(known bool) {
	t.users--
	t.left, t.known = time.Now(), known
}

// evict forgets a record whose peer is away, to make room for another one: of those
// that were no members the one that was left first, else of all. It reports false when
// every peer is connected.
func evict[K comparable, R interface{ held() *tenure }](records map[K]R) bool {
	var worst K
	var found *tenure
	for k, r := range records {
		if t := r.held(); t.users == 0 && (found == nil || t.known == found.known && t.left.Before(found.left) || found.known && !t.known) {
			worst, found = k, t
		}
	}
	delete(records, worst)
	return found != nil
}

// claim is which process speaks as a node here: the first that has come, until another
// one comes and whoever listens at the address of the node says that this is its own.
type claim struct {
	tenure

	token wire.Token
	owner string // Who connected last, for people.
}

// word is what the node itself, at its address, says of a token.
type word uint8

const (
	notAsked word = iota
	isOwn
	isForeign
	noAnswer
)

// ruling is what becomes of who shows a token.
type ruling uint8

const (
	enters    ruling = iota // It is the process that has the claim.
	displaces               // It gets the claim.
	disputed                // The node must be asked.
	refused
)

// judge rules on a token that was shown at a time. Where nobody answers, who has left
// keeps the claim for as long as it takes to dial anew: nobody slips in between.
func (c *claim) judge(t wire.Token, w word, at time.Time, keep time.Duration) ruling {
	switch {
	case c == nil:
		return displaces
	case hmac.Equal(c.token[:], t[:]):
		return enters
	case w == notAsked:
		return disputed
	case w == isOwn, w == noAnswer && c.users == 0 && at.Sub(c.left) >= keep:
		return displaces
	default:
		return refused
	}
}

// enter makes the connection one of the process that speaks as the peer, if it is.
func (a *accepted) enter(h *wire.Hello) *transport.RefusedError {
	at := time.Now()
	if done, r := a.try(h, notAsked, at); done {
		return r
	}
	leave, ok := a.e.disputes.enter(h.From.Address, a.over)
	if !ok {
		return a.taken(h.From, "another process", "the connection ended before the node was asked")
	}
	defer leave()
	if done, r := a.try(h, notAsked, at); done { // Another connection may have asked the same.
		return r
	}
	_, r := a.try(h, a.e.ask(h.From, h.Token), at)
	return r
}

// try is enter with what is known of the token. It reports false when the node must
// be asked before.
func (a *accepted) try(h *wire.Hello, w word, at time.Time) (done bool, r *transport.RefusedError) {
	displaced, done, r := a.settle(h, w, at)
	for _, other := range displaced {
		other.refuse(other.taken(h.From, a.caller.who(), notIt))
	}
	return done, r
}

// settle does try under the lock, and returns connections that have lost their place.
func (a *accepted) settle(h *wire.Hello, w word, at time.Time) (displaced []*accepted, done bool, r *transport.RefusedError) {
	e := a.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if why, ok := e.blocked[h.From]; ok { // Since it was admitted.
		return nil, true, blockedError(h.From, why)
	}
	if a.in != nil {
		if a.peer != h.From || a.class != h.Lane || a.claim.token != h.Token {
			return nil, true, &transport.RefusedError{Reason: transport.ReasonMalformed, Peer: a.peer, Detail: "a second handshake of another node, process or lane"}
		}
		return nil, true, nil
	}
	c := e.claims[h.From]
	switch c.judge(h.Token, w, at, e.cfg.MaxSilence) {
	case enters:
	case displaces:
		if c, r = e.grant(h); r != nil {
			return nil, true, r
		}
		displaced = e.displace(h.From)
	case disputed:
		return nil, false, nil
	default:
		why := notIt
		if w == noAnswer {
			why = "nobody answers at the address of the node to say which of the two is it"
		}
		return nil, true, a.taken(h.From, c.owner, why)
	}
	return displaced, true, a.join(h, c)
}

// notIt is why one is refused whose token the node does not own.
const notIt = "the node says that the latter is not it"

// taken is the refusal of who dials as a node whose place another one has.
func (a *accepted) taken(node gossip.NodeID, owner, why string) *transport.RefusedError {
	return &transport.RefusedError{
		Reason: transport.ReasonTaken, Peer: node,
		Detail: fmt.Sprintf("%s is connected as %s, and %s dials as the same node; %s: give each node an address and a process of its own",
			node, owner, a.caller.who(), why),
	}
}

// grant makes the claim of a process that has none. The caller holds Endpoint.mu.
func (e *Endpoint) grant(h *wire.Hello) (*claim, *transport.RefusedError) {
	for node, c := range e.claims {
		if c.users == 0 && !c.known && time.Since(c.left) > 2*e.cfg.GiveUpAfter {
			delete(e.claims, node)
		}
	}
	if e.claims[h.From] == nil && len(e.claims) >= e.inMax && !evict(e.claims) {
		return nil, &transport.RefusedError{
			Reason: transport.ReasonConnections, Peer: h.From,
			Detail: fmt.Sprintf("%d nodes are connected already", e.inMax),
		}
	}
	c := &claim{token: h.Token, tenure: tenure{left: time.Now()}}
	e.claims[h.From] = c
	return c, nil
}

// displace forgets the sessions of a node, whose connections are of no use any more,
// and returns those. The caller holds Endpoint.mu.
func (e *Endpoint) displace(node gossip.NodeID) []*accepted {
	for k, in := range e.in {
		if k.node == node {
			in.conn.Store(nil)
			delete(e.in, k)
		}
	}
	var connected []*accepted
	for a := range e.accepted {
		if a.peer == node {
			connected = append(connected, a)
		}
	}
	return connected
}

// ask asks a node, at its address, whether a token is its own. Of the processes of
// a host one alone listens there.
func (e *Endpoint) ask(node gossip.NodeID, t wire.Token) word {
	h := e.hello(node, machine.LaneControl)
	h.Asked = t
	// Whoever waits for the answer is to hear it before its handshake takes too long.
	w, err := e.introduce(context.Background(), e.cfg.HandshakeTimeout/2, h, nil)
	refused, ok := errors.AsType[*transport.RefusedError](err)
	switch {
	case ok && refused.Reason == transport.ReasonIncarnation:
		return isForeign // Another process lives there.
	case err != nil:
		return noAnswer
	case w.Own:
		return isOwn
	default:
		return isForeign
	}
}

// disputes has nodes asked one question at a time: whoever dials in the name of others
// cannot make this node dial them more often.
type disputes struct {
	mu     sync.Mutex
	places map[gossip.Address]*place
}

// place is an address with a question under way.
type place struct {
	turn    chan struct{} // Size one: a baton.
	waiting int           // And whoever has the baton.
}

// enter waits for the turn of a question to an address, and reports false when over is
// closed before. The caller calls leave when it is done.
func (d *disputes) enter(a gossip.Address, over <-chan struct{}) (leave func(), ok bool) {
	p := d.wait(a)
	select {
	case p.turn <- struct{}{}:
		return func() { <-p.turn; d.went(a, p) }, true
	case <-over:
		d.went(a, p)
		return nil, false
	}
}

func (d *disputes) wait(a gossip.Address) *place {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.places[a]
	if p == nil {
		p = &place{turn: make(chan struct{}, 1)}
		d.places[a] = p
	}
	p.waiting++
	return p
}

func (d *disputes) went(a gossip.Address, p *place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.waiting--; p.waiting == 0 {
		delete(d.places, a)
	}
}

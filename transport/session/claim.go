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

// Which process speaks as a node. Every process has a secret, and shows each peer a
// token made from it. The first process that dials as a node gets the claim; a
// connection with another token is a dispute, in which this node dials the address of
// the disputed node and asks whose token it is ([Endpoint.ask]), one question at a
// time for each address (disputes). The order is [accepted.enter], try, settle, judge;
// the winner's connections go on, the loser is refused.

// secret is a random number of this process alone. Every peer is shown a different
// token made from it, so that no peer can use its token with a third node.
type secret [32]byte

func newSecret() secret {
	var s secret
	_, _ = rand.Read(s[:]) // Never fails, by its documentation.
	return s
}

// token returns the token to show to a peer.
func (s *secret) token(peer gossip.NodeID) wire.Token {
	mac := hmac.New(sha256.New, s[:])
	_, _ = mac.Write([]byte(peer.String())) // Never fails.
	return wire.Token(mac.Sum(nil)[:len(wire.Token{})])
}

// made reports whether a token is the one that this process shows to the peer.
func (s *secret) made(peer gossip.NodeID, t wire.Token) bool {
	own := s.token(peer)
	return hmac.Equal(own[:], t[:])
}

// usage is how connections hold a record of a peer. Guarded by Endpoint.mu.
type usage struct {
	users int       // How many connections hold the record.
	left  time.Time // When the last connection ended.
	known bool      // Whether the peer was known at that time, see transport.Identity.
}

func (t *usage) held() *usage { return t }

func (t *usage) leave(known bool) {
	t.users--
	t.left, t.known = time.Now(), known
}

// evict forgets the record of a peer without a connection, to make room for a new
// record: the one that was left first among peers that were not known, or among all if
// every peer was known. It reports false when every peer is connected.
func evict[K comparable, R interface{ held() *usage }](records map[K]R) bool {
	var worst K
	var found *usage
	for k, r := range records {
		if t := r.held(); t.users == 0 && (found == nil || t.known == found.known && t.left.Before(found.left) || found.known && !t.known) {
			worst, found = k, t
		}
	}
	delete(records, worst)
	return found != nil
}

// claim says which process speaks as a node: the first that connected, until another
// process connects and the node, asked at its address, says that the other token is
// its own.
type claim struct {
	usage

	token wire.Token
	owner string // Description of the last connection's caller, for people.
}

// ownership is the answer of the node itself, at its address, to the question whose a token
// is.
type ownership uint8

const (
	notAsked ownership = iota
	isOwn
	isForeign
	noAnswer
)

// ruling is the outcome for the process that shows a token.
type ruling uint8

const (
	enters    ruling = iota // The process has the claim already.
	displaces               // The process gets the claim.
	disputed                // The node must be asked first.
	refused
)

// judge rules on a token. Where the node does not answer, the process whose
// connections have ended keeps the claim for the time keep, long enough to dial anew,
// so that no other process takes its place in between. Time at is when the token was
// shown.
func (c *claim) judge(t wire.Token, w ownership, at time.Time, keep time.Duration) ruling {
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

// enter admits the connection if its process may speak as the peer, and asks the node
// if that is disputed.
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
	if done, r := a.try(h, notAsked, at); done { // Another connection may have settled the dispute meanwhile.
		return r
	}
	_, r := a.try(h, a.e.ask(h.From, h.Token), at)
	return r
}

// try settles with an answer about the token, and refuses the connections that lose
// their place. It reports false when the node must be asked first.
func (a *accepted) try(h *wire.Hello, w ownership, at time.Time) (done bool, r *transport.RefusedError) {
	displaced, done, r := a.settle(h, w, at)
	for _, other := range displaced {
		other.refuse(other.taken(h.From, a.caller.who(), notIt))
	}
	return done, r
}

// settle is the part of try under the lock. It returns the connections that lose their
// place.
func (a *accepted) settle(h *wire.Hello, w ownership, at time.Time) (displaced []*accepted, done bool, r *transport.RefusedError) {
	e := a.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if why, ok := e.blocked[h.From]; ok { // Blocked after admit has looked.
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

// notIt is the reason given to a process whose token the node does not recognise.
const notIt = "the node says that the latter is not it"

// taken is the refusal of a process that dials as a node while another process has its
// claim.
func (a *accepted) taken(node gossip.NodeID, owner, why string) *transport.RefusedError {
	return &transport.RefusedError{
		Reason: transport.ReasonTaken, Peer: node,
		Detail: fmt.Sprintf("%s is connected as %s, and %s dials as the same node; %s: give each node an address and a process of its own",
			node, owner, a.caller.who(), why),
	}
}

// grant gives the claim to a process that has none. The caller holds Endpoint.mu.
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
	c := &claim{token: h.Token, usage: usage{left: time.Now()}}
	e.claims[h.From] = c
	return c, nil
}

// displace forgets the sessions of a node, and returns its connections, which are now
// of no use. The caller holds Endpoint.mu.
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

// ask asks a node, at its address, whether a token is its own. Only one process of a
// host can listen at that address.
func (e *Endpoint) ask(node gossip.NodeID, t wire.Token) ownership {
	h := e.hello(node, machine.LaneControl)
	h.Asked = t
	// Half of the timeout, so that the waiting caller's handshake does not time out too.
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

// disputes lets an address be asked one question at a time, so that a process which
// dials in the name of other nodes cannot make this node dial them in parallel.
type disputes struct {
	mu        sync.Mutex
	inquiries map[gossip.Address]*inquiry
}

// inquiry is an address that is being asked.
type inquiry struct {
	turn    chan struct{} // Size one: holds an element while a question is under way.
	waiting int           // How many wait for the turn, and the one that has it.
}

// enter waits for the turn to ask an address, and reports false when over is closed
// first. The caller calls leave after its question.
func (d *disputes) enter(a gossip.Address, over <-chan struct{}) (leave func(), ok bool) {
	p := d.wait(a)
	select {
	case p.turn <- struct{}{}:
		return func() { <-p.turn; d.leave(a, p) }, true
	case <-over:
		d.leave(a, p)
		return nil, false
	}
}

func (d *disputes) wait(a gossip.Address) *inquiry {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.inquiries[a]
	if p == nil {
		p = &inquiry{turn: make(chan struct{}, 1)}
		d.inquiries[a] = p
	}
	p.waiting++
	return p
}

func (d *disputes) leave(a gossip.Address, p *inquiry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.waiting--; p.waiting == 0 {
		delete(d.inquiries, a)
	}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/client/clientsim"
	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
)

// The ledger follows each request from its begin to its end, beside everything that carries it, and says which promise
// was broken.

// entry is a request.
type entry struct {
	r        *clientsim.Request
	token    string
	sent     int // The ledger's count when the request was begun.
	done     int // The ledger's count when it ended. Zero: it has not.
	code     clientv1.Code
	accepted incarnation // The node that has accepted it, in which life.
	handled  int
	reached  int // How often a node got it.
}

// incarnation is one life of a node, from a start to its end.
type incarnation struct {
	n    *node
	life int
}

// route is what one client sends to one entity over one incarnation of a node.
type route struct {
	to string // Client and entity, as tokens begin.
	by incarnation
}

// ledger holds what is known of all requests. Its count grows with each begin and end of one.
type ledger struct {
	w     *World
	count int
	by    map[string]*entry
	open  []*entry
	last  map[route]int // The largest sent of the requests of a route that were handled.
}

func newLedger(w *World) *ledger {
	return &ledger{w: w, by: map[string]*entry{}, last: map[route]int{}}
}

// begin notes a request.
func (l *ledger) begin(token string, r *clientsim.Request) *entry {
	l.count++
	e := &entry{r: r, token: token, sent: l.count}
	l.by[token] = e
	l.open = append(l.open, e)
	return e
}

// of returns the entry of a token; what follows the token is there for its size.
func (l *ledger) of(token string) *entry { return l.by[strings.TrimRight(token, " ")] }

// reached notes that a gateway has got a request.
func (l *ledger) reached(token string, n *node) {
	e := l.of(token)
	e.reached++
	if e.reached > 1 {
		l.w.Counts.Again++
	}
	l.w.Log("%s gets %s", n.name, e.token)
}

// accept notes that sharding has accepted a request.
func (l *ledger) accept(token string, n *node) { l.of(token).accepted = incarnation{n, n.life} }

// handle notes that an entity handles a request.
func (l *ledger) handle(m *message) {
	e := l.of(m.token)
	l.w.Counts.Handled++
	l.w.Log("%s is handled", e.token)
	e.handled++
	if e.handled > 1 {
		l.w.Fail(fmt.Errorf("C3: %s was handled twice", e.token))
	}
	if e.done > 0 && unhandled(e.code) {
		l.w.Fail(fmt.Errorf("C2: %s has ended as %v, and is handled", e.token, e.code))
	}
	on := route{e.token[:strings.LastIndexByte(e.token, '/')], e.accepted}
	// (docs/clients.md, "what goes later by the same node comes after it, what goes by another one may overtake it")
	if m.tell && e.done > 0 && e.code == clientv1.Code_CODE_OK && e.done < l.last[on] {
		l.w.Fail(fmt.Errorf("C6: %s was accepted before one was begun that has overtaken it", e.token))
	}
	l.last[on] = max(l.last[on], e.sent)
}

// end notes how a request has ended.
func (l *ledger) end(e *entry, r clientsim.Result) {
	l.count++
	l.w.Log("%s ends as %v", e.token, r.Code)
	if e.done > 0 {
		l.w.Fail(fmt.Errorf("C1: %s has ended as %v, and ends again as %v", e.token, e.code, r.Code))
		return
	}
	e.done, e.code = l.count, r.Code
	l.w.Counts.Ended[r.Code]++
	if late := l.w.Now() - e.r.Ends(); late > l.slack(e) {
		l.w.Fail(fmt.Errorf("C1: %s ends %v after its deadline", e.token, late))
	}
	switch {
	case unhandled(r.Code) && e.handled > 0:
		l.w.Fail(fmt.Errorf("C2: %s was handled, and ends as %v", e.token, r.Code))
	case r.Code == clientv1.Code_CODE_OK && e.r.Tell && e.accepted.n == nil:
		l.w.Fail(fmt.Errorf("C4: %s was told, and no node has accepted it", e.token))
	case r.Code == clientv1.Code_CODE_OK && !e.r.Tell && strings.TrimRight(string(r.Payload), " ") != "re "+e.token:
		l.w.Fail(fmt.Errorf("C4: the reply to %s is %.60q", e.token, r.Payload))
	case r.Code == clientv1.Code_CODE_OK && !e.r.Tell && e.handled == 0:
		l.w.Fail(fmt.Errorf("C4: %s was answered, and not handled", e.token))
	case r.Code == clientv1.Code_CODE_ENTITY_FAILED && e.handled == 0:
		l.w.Fail(fmt.Errorf("C4: the entity of %s has failed without it", e.token))
	}
}

// slack returns how much later than it should a request may end: one without a deadline at the next look at such
// requests (client/doc.go, "An ask ends with its context, without a deadline a quarter of a second after a minute at
// the latest").
func (l *ledger) slack(e *entry) time.Duration {
	if e.r.Deadline != 0 {
		return 0
	}
	return clientsim.Sweep
}

// unhandled reports whether an outcome says that the request was not handled, and never will be (docs/clients.md, "What
// a node may have handled is never sent twice.").
func unhandled(c clientv1.Code) bool {
	return c != clientv1.Code_CODE_OK && c != clientv1.Code_CODE_ENTITY_FAILED && c != clientv1.Code_CODE_UNKNOWN_OUTCOME
}

// checkOpen finds requests that should have ended.
func (l *ledger) checkOpen() {
	kept := l.open[:0]
	for _, e := range l.open {
		if e.done > 0 {
			continue
		}
		kept = append(kept, e)
		if late := l.w.Now() - e.r.Ends(); late > l.slack(e) {
			l.w.Fail(fmt.Errorf("C1: %s has not ended %v after its deadline", e.token, late))
		}
	}
	l.open = kept
}

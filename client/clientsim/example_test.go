// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clientsim_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/client/clientsim"
	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
)

// world is the least that a client needs: events, by their times.
type world struct {
	now    time.Duration
	events []event
}

type event struct {
	at time.Duration
	do func()
}

func (w *world) Now() time.Duration              { return w.now }
func (w *world) After(d time.Duration, f func()) { w.events = append(w.events, event{w.now + d, f}) }

// run lets events happen in the order of their times, until one of them is later than that.
func (w *world) run(until time.Duration) {
	for {
		first := -1
		for i, e := range w.events {
			if e.at <= until && (first < 0 || e.at < w.events[first].at) {
				first = i
			}
		}
		if first < 0 {
			return
		}
		e := w.events[first]
		w.events = append(w.events[:first:first], w.events[first+1:]...)
		w.now = e.at
		e.do()
	}
}

// echo is a node that answers every request with its message, a millisecond later.
type echo struct{ w *world }

func (e echo) Dial(s *clientsim.Session) clientsim.Conn {
	e.w.After(0, func() { s.Received(&clientv1.Outcomes{Welcome: &clientv1.Welcome{Node: "n", Window: 10}}) })
	return line{e.w, s}
}

// line is a connection to it.
type line struct {
	w *world
	s *clientsim.Session
}

func (l line) Send(m *clientv1.Requests) bool {
	for _, r := range m.GetRequests() {
		l.w.After(time.Millisecond, func() {
			l.s.Received(&clientv1.Outcomes{Outcomes: []*clientv1.Outcome{{Id: r.GetId(), Code: clientv1.Code_CODE_OK, Payload: r.GetPayload()}}})
		})
	}
	return true
}

func (line) CloseSend() {}
func (line) Close()     {}

// A client asks a node in virtual time.
func Example() {
	w := new(world)
	c := clientsim.Open(w, rand.New(rand.NewPCG(1, 1)), client.Default(), []clientsim.Node{echo{w}})
	c.Do(&clientsim.Request{
		Kind: "accounts", Entity: "acct-42", Payload: []byte("hello"), Deadline: time.Second,
		Done: func(r clientsim.Result) { fmt.Println(r.Code, string(r.Payload), w.Now() < 10*time.Millisecond) },
	})
	w.run(time.Minute)
	c.Close()
	// Output: CODE_OK hello true
}

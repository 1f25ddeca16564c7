// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/quorate/quorate/transport/mutual"
)

// readers are the streams that are answered, by who reads them: the name in a certificate, or the IP address. When all
// places are taken a newcomer displaces the oldest stream of the reader that has most, if that has two more
// than the newcomer; an operator displaces it in any case. Operators are displaced by nobody.
type readers struct {
	mu    sync.Mutex
	open  []*reader // The oldest first.
	count map[string]int
}

// reader is a stream that is answered.
type reader struct {
	who      string
	operator bool
	end      context.CancelCauseFunc
}

// errDisplaced ends a stream for another one.
var errDisplaced = errors.New("management: the place of the stream is needed by others")

// readerOf returns who reads a stream.
func readerOf(r *http.Request, operator bool, end context.CancelCauseFunc) *reader {
	out := &reader{who: r.RemoteAddr, operator: operator, end: end}
	if c := placeOf(r.Context()); c != nil {
		out.who = c.Host()
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		out.who = mutual.Name(r.TLS.PeerCertificates[0])
	}
	return out
}

// join adds a stream. Where all places are taken it displaces another one, or reports false.
func (a *readers) join(newcomer *reader, places int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.open) >= places {
		weak := a.weakest()
		if weak == nil || !newcomer.operator && a.count[weak.who] < a.count[newcomer.who]+2 {
			return false
		}
		a.remove(weak)
		weak.end(errDisplaced)
	}
	a.open = append(a.open, newcomer)
	if a.count == nil {
		a.count = map[string]int{}
	}
	a.count[newcomer.who]++
	return true
}

// weakest returns the oldest stream of the reader that has most; nil if operators have all.
func (a *readers) weakest() (weak *reader) {
	for _, r := range a.open {
		if !r.operator && (weak == nil || a.count[r.who] > a.count[weak.who]) {
			weak = r
		}
	}
	return weak
}

// leave takes a stream out, once.
func (a *readers) leave(r *reader) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(r)
}

func (a *readers) remove(gone *reader) {
	for i, r := range a.open {
		if r == gone {
			a.open = append(a.open[:i], a.open[i+1:]...)
			if a.count[r.who]--; a.count[r.who] == 0 {
				delete(a.count, r.who)
			}
			return
		}
	}
}

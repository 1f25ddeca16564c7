// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// maxRecords is how many records a memory keeps: twice the contact points of the largest
// answer, each with its addresses. A memory that is full forgets all of them.
const maxRecords = 50_000

// question is a question about a complete name.
type question struct {
	name string // In lower case, with the dot at its end.
	kind dnsmessage.Type
}

// answer holds the records that answer a question.
type answer struct {
	// records have the type that was asked for; extra are the addresses that came with them.
	records, extra []record
	// until is when the answer has to be asked for again.
	until time.Time
}

// lookup is a question that one lookup asks, for all lookups that want the answer.
type lookup struct {
	done chan struct{} // Closed when the fields below are set.
	answer
	err error
	// abandoned says that the context of the asking lookup ended before there was an answer.
	// One of the other lookups, whose contexts go on, asks again.
	abandoned bool
}

// memory keeps answers until their time is up. Where several lookups want the same answer,
// one of them asks. A memory is safe for concurrent use.
type memory struct {
	now func() time.Time

	mu      sync.Mutex
	kept    map[question]answer
	records int // How many records kept holds; a question without records counts as one.
	flights map[question]*lookup
}

func newMemory(now func() time.Time) *memory {
	return &memory{now: now, kept: map[question]answer{}, flights: map[question]*lookup{}}
}

// answer returns the kept answer, or what find returns: the lookup that comes first calls
// its find, and the others wait for the result. Errors are not kept.
func (m *memory) answer(ctx context.Context, q question, find func() (answer, error)) (answer, error) {
	for {
		m.mu.Lock()
		if kept, ok := m.kept[q]; ok && m.now().Before(kept.until) {
			m.mu.Unlock()
			return kept, nil
		}
		f, others := m.flights[q]
		if !others {
			f = &lookup{done: make(chan struct{})}
			m.flights[q] = f
		}
		m.mu.Unlock()
		if !others {
			f.answer, f.err = find()
			f.abandoned = f.err != nil && ctx.Err() != nil
			m.land(q, f)
			return f.answer, f.err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
		if !f.abandoned {
			return f.answer, f.err
		}
	}
}

// land keeps the answer of a flight and tells the lookups that wait for it.
func (m *memory) land(q question, f *lookup) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.flights, q)
	if f.err == nil {
		m.keep(q, f.answer)
	}
	close(f.done)
}

func (m *memory) keep(q question, a answer) {
	size := 1 + len(a.records) + len(a.extra)
	if old, ok := m.kept[q]; ok {
		m.records -= 1 + len(old.records) + len(old.extra)
	}
	if m.records+size > maxRecords {
		clear(m.kept)
		m.records = 0
	}
	m.kept[q] = a
	m.records += size
}

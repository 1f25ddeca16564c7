// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/quorate/quorate/sharding/state/store"
)

// History is what clients have asked for on one record, and were answered. Each change has a text of its own, and the
// state is the list of the texts. A History is safe for concurrent use.
type History struct {
	mu    sync.Mutex
	clock int // Counts beginnings and ends. Guarded by mu, as all below.
	asked map[string]*change
	reads [][]string
}

// change is one change that a client has asked for.
type change struct {
	begun, acked int // By the clock; acked is 0 if there was no acknowledgement.
}

// NewHistory returns a history without changes.
func NewHistory() *History { return &History{asked: map[string]*change{}} }

// Ask notes that a change is asked for.
func (h *History) Ask(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	h.asked[text] = &change{begun: h.clock}
}

// Acknowledge notes that a change was acknowledged.
func (h *History) Acknowledge(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	h.asked[text].acked = h.clock
}

// Read notes a state that an owner has answered with.
func (h *History) Read(state []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reads = append(h.reads, slices.Clone(state))
}

// Acknowledged returns how many changes were acknowledged.
func (h *History) Acknowledged() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.asked {
		if c.acked > 0 {
			n++
		}
	}
	return n
}

// Check compares the history with the state that the store has in the end.
func (h *History) Check(final []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := map[string]int{}
	latest := 0 // The latest beginning of the changes up to the present one.
	for i, text := range final {
		c := h.asked[text]
		switch before, twice := at[text]; {
		case c == nil:
			return fmt.Errorf("S2: change %d, %s, was asked for by nobody", i, text)
		case twice:
			return fmt.Errorf("S2: %s is change %d and change %d", text, before, i)
		case c.acked > 0 && c.acked < latest:
			return fmt.Errorf("S3: %s, change %d, was acknowledged before a change was asked for that stands before it", text, i)
		}
		at[text] = i
		latest = max(latest, c.begun)
	}
	var lost []string
	for text, c := range h.asked {
		if _, there := at[text]; c.acked > 0 && !there {
			lost = append(lost, text)
		}
	}
	if slices.Sort(lost); len(lost) > 0 {
		return fmt.Errorf("S1: acknowledged and lost: %s", strings.Join(lost, ", "))
	}
	for _, read := range h.reads {
		if len(read) > len(final) || !slices.Equal(read, final[:len(read)]) {
			return fmt.Errorf("S4: %v was read, the store has %v", read, final)
		}
	}
	return nil
}

// Content returns the state in a record: a list in JSON, and an event for each change after it.
func Content(r store.Record) ([]string, error) {
	var state []string
	if r.Snapshot.Form > 0 {
		if err := json.Unmarshal(r.Snapshot.Bytes, &state); err != nil {
			return nil, err
		}
	}
	for _, e := range r.Events {
		state = append(state, string(e.Bytes))
	}
	return state, nil
}

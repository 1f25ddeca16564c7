// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"slices"
	"sync"

	"github.com/quorate/quorate/plugins"
)

// Events is an observer that keeps what it is told, for tests inside this package and for
// those with processes, which are outside.
type Events struct {
	mu   sync.Mutex
	list []plugins.Event
}

// Observe keeps an event.
func (e *Events) Observe(one plugins.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, one)
}

// Types returns the types of all events but [plugins.Called], of which there is one for
// each call.
func (e *Events) Types() []plugins.EventType {
	e.mu.Lock()
	defer e.mu.Unlock()
	var types []plugins.EventType
	for _, one := range e.list {
		if one.Type != plugins.Called {
			types = append(types, one.Type)
		}
	}
	return types
}

// Last returns the latest event of a type.
func (e *Events) Last(typ plugins.EventType) (plugins.Event, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range slices.Backward(e.list) {
		if one.Type == typ {
			return one, true
		}
	}
	return plugins.Event{}, false
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"slices"

	"github.com/quorate/quorate/sharding/state/store"
)

// Queue holds the requests that wait for a call of the store, in their order, and says which are made in the next call.
//
// A request whose calls have failed is made in smaller ones: a request that the store cannot take must not keep those
// of other entities from being saved.
type Queue[R comparable] struct {
	most    int
	waiting []entry[R]
}

type entry[R comparable] struct {
	key     store.Key
	most    int
	request R
}

// narrower is the exponent of two by which a call is smaller for each failed attempt of a request.
const narrower = 3

// NewQueue returns an empty queue for calls of at most most requests.
func NewQueue[R comparable](most int) *Queue[R] { return &Queue[R]{most: most} }

// Len returns how many requests wait.
func (q *Queue[R]) Len() int { return len(q.waiting) }

// Put adds a request. Failed is how many calls with it have failed.
func (q *Queue[R]) Put(key store.Key, failed int, request R) {
	q.waiting = append(q.waiting, entry[R]{key, max(1, q.most>>(narrower*min(failed, 20))), request})
}

// Next removes and returns the requests of the next call: the first one, and those after it that fit, one for each key.
func (q *Queue[R]) Next() []R {
	if len(q.waiting) == 0 {
		return nil
	}
	most := q.waiting[0].most
	taken, keys, rest := []R(nil), map[store.Key]bool{}, []entry[R](nil)
	for _, e := range q.waiting {
		if len(taken) >= min(most, e.most) || keys[e.key] {
			rest = append(rest, e)
			continue
		}
		most = min(most, e.most)
		keys[e.key] = true
		taken = append(taken, e.request)
	}
	q.waiting = rest
	return taken
}

// Remove removes a request, if it waits.
func (q *Queue[R]) Remove(request R) {
	q.waiting = slices.DeleteFunc(q.waiting, func(e entry[R]) bool { return e.request == request })
}

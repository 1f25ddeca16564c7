// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import "github.com/quorate/quorate/ddata/internal/table"

// SubscriberKeys is how many keys wait for a subscriber.
const SubscriberKeys = maxSubscriberKeys

// AloneTable is a table that nobody replicates.
func AloneTable() *table.Table { return table.New(table.Config{Self: 1}) }

// Jam holds the machine up, and fills its inbox, until release is called.
func (r *Replicator) Jam() (release func()) {
	answer := make(chan scanResult)
	ask := scanQuery{group: r.groups[0], answer: answer}
	for r.handle.Post(ask) == nil {
		ask.answer = make(chan scanResult, 1) // Only the first question waits for somebody.
	}
	return func() { <-answer }
}

// Forget empties the table of a key, and tells subscribers so when the function that it returns is called: a key
// that has changed just before is looked up in between.
func (r *Replicator) Forget(key string) (tell func()) {
	r.groups[r.keys.of(key)].table.Wipe()
	r.hub.changed([]string{key})
	every := func(string) bool { return true }
	return func() { r.hub.wiped(1, every, every) }
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"log/slog"
	"sync"
)

// loss is a reason for which messages are dropped.
type loss uint8

const (
	lossLane       loss = iota // The connection was full, and the publisher's policy is to drop.
	lossNode                   // The node has gone before its messages were sent.
	lossSubscriber             // A subscriber had no room.

	lossReasons
)

// String returns the reason as the value of an attribute.
func (l loss) String() string {
	return [lossReasons]string{"connection-full", "node-gone", "subscriber-full"}[l]
}

// losses counts and logs dropped messages.
type losses struct {
	log *slog.Logger

	mu     sync.Mutex // Guards what follows; held for bookkeeping only.
	total  [lossReasons]uint64
	logged [lossReasons]uint64 // How many of them were logged.
}

// add counts messages that were dropped.
func (l *losses) add(why loss, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total[why] += uint64(n)
	// The first is logged at once, the others together, by flush.
	if l.logged[why] == 0 {
		l.write(why)
	}
}

// flush logs what was not logged yet.
func (l *losses) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for why := range lossReasons {
		if l.total[why] > l.logged[why] {
			l.write(why)
		}
	}
}

// write logs what was not logged yet. The caller holds mu.
func (l *losses) write(why loss) {
	n := l.total[why] - l.logged[why]
	l.logged[why] = l.total[why]
	l.log.Warn("pubsub messages dropped", "reason", why.String(), "messages", n, "total", l.total[why])
}

// counts returns how many messages were dropped.
func (l *losses) counts() [lossReasons]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding"
)

// Each oracle can fail: what a program was told is changed behind its back, and it must say so.

// noting is a test that notes its errors in the place of failing. Programs err in goroutines of their own.
type noting struct {
	testing.TB

	guard sync.Mutex
	said  []string
}

func (n *noting) Errorf(format string, args ...any) {
	n.guard.Lock()
	defer n.guard.Unlock()
	n.said = append(n.said, fmt.Sprintf(format, args...))
}

// taken returns what was said since it was asked last.
func (n *noting) taken() string {
	n.guard.Lock()
	defer n.guard.Unlock()
	said := strings.Join(n.said, "\n")
	n.said = nil
	return said
}

// under calls what plants a fault with a lock held.
func under(guard *sync.Mutex, plant func()) func() {
	return func() {
		guard.Lock()
		defer guard.Unlock()
		plant()
	}
}

func TestEachOracleCanFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &noting{TB: t}
		w := newWorld(n, 1, NodesLeast)
		counters, sets, accounts, deliveries := newCounters(w), newSets(w), newAccounts(w), newDeliveries(w)
		reminders, remembered, writer, chat := newReminders(w), newRemembered(w), newWriter(w), newChat(w)
		w.use(counters, sets, accounts, deliveries, reminders, remembered, writer, chat)
		var restored func()
		w.play(func() {
			w.c.Advance(10 * time.Second)
			restored = accounts.copied()
			w.c.Advance(10 * time.Second)
		})
		require.Empty(t, n.taken())

		for want, plant := range map[string]func(){
			"were acknowledged before it": func() { counters.of["kept-count-1"].acknowledged += 100 },
			"were ever added":             func() { counters.of["all-count-1"].begun = 0 },
			"which was acknowledged":      func() { sets.of["near-set"].acknowledged["it"] = true },
			"stored nowhere":              func() { sets.of["all-set"].nowhere = sets.of["all-set"].acknowledged },
			"and is there 0 times":        func() { accounts.of["a0"].acknowledged["it"] = true },
			"it was said that it is not":  func() { *accounts.of["a1"] = paymentOutcomes{} },
			"of which it was said":        restored, // What came after the copy is there.
			"whose node runs, came":       func() { deliveries.senders[len(deliveries.senders)-1].sent[0] += 2 },
			"has not come":                func() { reminders.due["it"] = time.Now() },
			"runs 0 times":                func() { remembered.told["it"] = true },
			"heard remark":                under(&chat.guard, func() { chat.listeners[0].heard[voice(chat.listeners[1], last)] = math.MaxInt }),
			"finds the places":            func() { chat.listeners = chat.listeners[1:] },
			"has written":                 under(&writer.guard, func() { writer.highest = sharding.Epoch{Born: math.MaxInt64} }),
		} {
			under(&w.mu, func() { clear(w.found) })()
			n.taken()
			plant()
			w.judge()
			require.Contains(t, n.taken(), want)
		}

		n.taken()
		w.c.Kill(w.machines[0].node)
		w.whole("nothing")
		require.Contains(t, n.taken(), "the node on 10.0.0.1:7946 has ended by itself")
	})
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/quorate/quorate/examples/bank"
	"github.com/quorate/quorate/internal/acceptance/auditor"
)

const (
	// exitDown is the exit status of a node that learns that the others went on without
	// it.
	exitDown = 3

	// noticedAfter is how long clients keep asking a node that stands still: the
	// time after which a load balancer would have taken it out.
	noticedAfter = time.Second

	// maxLate is how many transfers are sent to a node that stands still.
	maxLate = 50
)

// freeze stops a node until the others have removed it and another node has taken its
// place, lets it go on, and waits until it ends by itself. Requests that it got meanwhile
// must not be acknowledged by it: others own its accounts.
func (d *demo) freeze(ctx context.Context) error {
	victim, err := d.processes.pick(ctx, d.load.rnd.IntN(2) == 0, d.load.rnd)
	if err != nil {
		return err
	}
	own, err := d.ownedBy(victim, maxLate)
	if err != nil {
		return err
	}
	at := time.Now()
	if err := victim.freeze(); err != nil {
		return err
	}
	d.printer.event("%s is frozen", victim.name)
	if err := sleep(ctx, noticedAfter); err != nil {
		return err
	}
	d.processes.forget(victim)
	victim.abort()
	d.load.sendLate(ctx, victim, own)
	if err := d.processes.waitRemoved(ctx, victim); err != nil {
		return err
	}
	fresh, err := d.processes.start(ctx)
	if err != nil {
		return err
	}
	if err := d.processes.admit(ctx, fresh); err != nil {
		return err
	}
	d.printer.event("%s thaws after %v, %d transfers wait for it", victim.name, time.Since(at).Round(10*time.Millisecond), len(own))
	if err := victim.thaw(); err != nil {
		return err
	}
	thawed := time.Now()
	if err := victim.ended(ctx, exitDown); err != nil {
		return err
	}
	d.printer.event("%s ended by itself with status %d, %v later", victim.name, exitDown, time.Since(thawed).Round(10*time.Millisecond))
	return nil
}

// ownedBy returns at most n accounts that a node owns, by the journals.
func (d *demo) ownedBy(p *process, n int) ([]string, error) {
	var own []string
	for i := range d.opts.accounts {
		history, err := auditor.ReadHistory(d.journal, account(i))
		if err != nil {
			return nil, err
		}
		if history.Owner() == p.Node {
			own = append(own, account(i))
		}
		if len(own) == n {
			break
		}
	}
	return own, nil
}

// lateAnswer is an answer that a node gave after it had been frozen. If the account had
// moved to another node in time, the answer comes from there and was passed on, as it
// should be. The audit distinguishes the two cases.
type lateAnswer struct {
	told

	by string
}

// sendLate sends a transfer from each of the accounts to a node that stands
// still. The clients wait for it to answer and then, because it does not, ask
// the others, as with any transfer.
func (l *load) sendLate(ctx context.Context, p *process, accounts []string) {
	for i, from := range accounts {
		to := account(l.rnd.IntN(l.accounts))
		for to == from {
			to = account(l.rnd.IntN(l.accounts))
		}
		t := bank.Transfer{ID: fmt.Sprintf("late-%06d", i), From: from, To: to, Cents: 1}
		l.mu.Lock()
		l.asked[t.ID] = true
		l.mu.Unlock()
		// Owned by the load; ends with its answer or ctx, finish waits for it.
		l.pending.Go(func() {
			var receipt bank.Receipt
			if l.request(ctx, p, http.MethodPost, "/transfers", t, &receipt) == nil {
				l.mu.Lock()
				l.late = append(l.late, lateAnswer{told{t, receipt}, p.Node})
				l.mu.Unlock()
				l.note(told{t, receipt})
				return
			}
			l.transfer(ctx, t, i)
		})
	}
}

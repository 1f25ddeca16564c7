// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/quorate/quorate/examples/bank"
	"github.com/quorate/quorate/internal/acceptance/auditor"
)

// After the load has ended, the journals of all accounts are read ([readLedger]) and
// compared with what the clients were told ([ledger.missing]); the verdict is printed as
// text and as JSON.

// verdict is the last line of the demo.
type verdict struct {
	Nodes            int   `json:"nodes"`
	Accounts         int   `json:"accounts"`
	Acknowledged     int   `json:"acknowledged"`
	Lost             int   `json:"lost"`
	Duplicated       int   `json:"duplicated"`
	OverlappingEpoch int   `json:"overlapping_epochs"`
	UnavailableMax   int64 `json:"unavailable_ms_max"`
	RecoveredMax     int64 `json:"recovered_ms_max"`
	CentsAppeared    int64 `json:"cents_appeared"`
	Retried          int   `json:"retried"`
	Unanswered       int   `json:"unanswered"`
	Unasked          int   `json:"unasked"`
	Paused           int   `json:"paused"`
	Moved            int   `json:"owners"`
	Late             int   `json:"late_acknowledged"` // Acknowledged by an owner that was frozen until others replaced it.

	Phases  map[string]*phase        `json:"phases"`
	Plugins map[string]pluginOutcome `json:"plugins,omitempty"` // Plugins that were killed or stopped, by name.
	Missed  []string                 `json:"missed,omitempty"`  // Promises of the phases that were not kept.

	StoodStill int64    `json:"stood_still_ms"`       // How long the machine did not run the demo when it was to run.
	Waited     int      `json:"waited_percent"`       // How much of the time some program waited for a processor.
	NotJudged  []string `json:"not_judged,omitempty"` // As Missed, on a busy machine.

	Error string `json:"error,omitempty"` // Why the run did not finish.
	OK    bool   `json:"ok"`
}

// bookingKey names one booking of a transfer: the account of the journal that has it, and the transfer.
type bookingKey struct{ account, transfer string }

// entry is a booking that counts, with the epoch of its owner.
type entry struct {
	bank.Booking

	epoch string
}

// epochOf is an epoch of an account.
type epochOf struct{ account, epoch string }

// ledger is the content of all journals.
type ledger struct {
	booked      map[bookingKey][]entry
	beyond      map[bookingKey]bool // Written, but by an owner that had been replaced.
	owned       map[epochOf]string  // The owner of each epoch.
	cents       int64               // Sum over all accounts.
	accounts    int
	owners      int
	overlapping int
}

// audit compares the journals with what the clients were told. The load must
// have ended.
func audit(dir string, l *load) (verdict, error) {
	books, err := readLedger(dir)
	if err != nil {
		return verdict{}, err
	}
	v := verdict{
		Nodes: len(l.processes.all), Accounts: books.accounts, Acknowledged: len(l.told), Retried: l.again, Paused: l.paused,
		Unanswered: l.unanswered, UnavailableMax: l.longest.Milliseconds(), Moved: books.owners,
		OverlappingEpoch: books.overlapping,
		CentsAppeared:    books.cents - int64(books.accounts)*bank.OpeningCents,
	}
	for _, t := range l.told {
		lost, late := books.missing(t)
		v.Lost += lost
		v.OverlappingEpoch += late
	}
	for _, a := range l.late {
		if books.owned[epochOf{a.From, a.receipt.Paid}] == a.by || books.owned[epochOf{a.To, a.receipt.Got}] == a.by {
			v.Late++
		}
	}
	for at, entries := range books.booked {
		v.Duplicated += len(entries) - 1
		if !l.asked[at.transfer] {
			v.Unasked++
		}
	}
	v.OK = v.Lost == 0 && v.Duplicated == 0 && v.OverlappingEpoch == 0 && v.CentsAppeared == 0 && v.Unanswered == 0 &&
		v.Unasked == 0 && v.Late == 0 && v.Accounts == l.accounts && v.Acknowledged > 0
	return v, nil
}

// missing counts the legs of an answered transfer that are not in the journals as the
// client was told, and legs that were acknowledged by an owner that had been replaced
// without knowing it: the record that counts, if there is one, was then written by a
// later owner, for a repetition of the transfer.
func (b *ledger) missing(t told) (lost, late int) {
	check := func(at bookingKey, cents int64, refused bool, epoch string) {
		entries := b.booked[at]
		stands := len(entries) > 0 && entries[0].Cents == cents && entries[0].Refused == refused
		if !stands {
			lost++
		}
		if (!stands && b.beyond[at]) || (stands && entries[0].epoch > epoch) {
			late++
		}
	}
	check(bookingKey{t.From, t.ID}, -t.Cents, t.receipt.Refused, t.receipt.Paid)
	if !t.receipt.Refused {
		check(bookingKey{t.To, t.ID}, t.Cents, false, t.receipt.Got)
	}
	return lost, late
}

// readLedger reads the journals of all accounts.
func readLedger(dir string) (*ledger, error) {
	accounts, err := auditor.ReadAccounts(dir)
	if err != nil {
		return nil, err
	}
	b := &ledger{booked: map[bookingKey][]entry{}, beyond: map[bookingKey]bool{}, owned: map[epochOf]string{}, accounts: len(accounts)}
	for _, a := range accounts {
		books, err := auditor.ReadHistory(dir, a)
		if err != nil {
			return nil, err
		}
		b.add(a, books.Owners)
	}
	return b, nil
}

// add adds the books of one account.
func (b *ledger) add(account string, tenures []auditor.AccountOwner) {
	b.cents += bank.OpeningCents
	b.owners += len(tenures)
	for i, t := range tenures {
		b.owned[epochOf{account, t.Epoch}] = t.Node
		for _, r := range t.Booked {
			at := bookingKey{account, r.Transfer}
			b.booked[at] = append(b.booked[at], entry{r, t.Epoch})
			if !r.Refused {
				b.cents += r.Cents
			}
		}
		for _, r := range t.Late {
			b.beyond[bookingKey{account, r.Transfer}] = true
		}
		if i+1 < len(tenures) && overlaps(t, tenures[i+1]) {
			b.overlapping++
		}
	}
}

// overlaps reports whether the owner of a tenure still worked after the next had begun: all
// processes run on one machine and read one clock.
func overlaps(t, next auditor.AccountOwner) bool {
	return slices.ContainsFunc(slices.Concat(t.Booked, t.Late), func(b bank.Booking) bool { return b.At > next.Began })
}

// report prints the verdict for people and, as the last line, for programs.
func (d *demo) report(v verdict) bool {
	for _, r := range d.recoveries {
		v.RecoveredMax = max(v.RecoveredMax, r.Milliseconds())
	}
	v.Phases = d.load.phases(d.windows)
	v.Missed = missed(v.Phases, d.opts.plugins)
	if d.opts.plugins {
		v.Plugins = d.away
	}
	if v.StoodStill, v.Waited = d.machine.close(); isBusy(v.StoodStill, v.Waited) {
		v.Missed, v.NotJudged = nil, v.Missed
	}
	d.printer.summary(v)
	d.printer.phases(d.windows, v)
	line, err := json.Marshal(v)
	if err != nil {
		return false
	}
	_, err = fmt.Fprintln(d.printer.out, string(line))
	return v.OK && err == nil
}

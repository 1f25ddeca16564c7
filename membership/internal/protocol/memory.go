// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// CallRemember is the port of the calls that put a [Record] on disk. An answer without an
// error says that the record survives the process and the machine.
const CallRemember = "remember"

// ErrRecordLost is wrapped by the error of a [CallRemember] that could not write, but
// removed the previous record, so that no outdated record is left.
var ErrRecordLost = errors.New("the record could not be written and was removed")

// rememberTimeout is how long a disk may take. A disk that hangs may hold an old record or
// a later one: which, nobody knows, so the node ends.
const rememberTimeout = 5 * time.Second

// memory is the node's [Record]: the one that is wanted, and the one that is on disk.
//
//	want ──> Call ──> kept ──> votes leave, the node enters, states are seen
//	           │
//	           ├─ removed ──> the record lives in the process alone
//	           └─ neither, or no answer ──> the node ends
type memory struct {
	*core

	// whenKept continues what has waited for the record to be kept.
	whenKept func()

	// durable says that a disk keeps the record.
	durable bool

	// wanted is the newest record. writing is the record that the call in flight writes;
	// call is zero if none is in flight.
	wanted  Record
	writing Record
	call    machine.CallID
}

func newMemory(c *core, whenKept func()) *memory {
	return &memory{core: c, whenKept: whenKept, durable: c.deps.Remember, wanted: c.kept}
}

// busy reports whether a write is under way.
func (d *memory) busy() bool { return d.call != 0 }

// remember makes r the newest record. What depends on r goes on when r is kept.
func (d *memory) remember(r Record) {
	if r.equal(d.wanted) {
		return
	}
	d.wanted = r
	d.writeRecord()
}

// writeRecord begins to write the wanted record, one write at a time.
func (d *memory) writeRecord() {
	switch {
	case d.busy() || d.wanted.equal(d.kept):
		return
	case !d.durable:
		d.kept = d.wanted
		d.whenKept()
		return
	}
	d.writing, d.call = d.wanted, d.nextCall()
	d.out.Add(machine.Call{ID: d.call, Port: CallRemember, Request: d.writing, Limit: rememberTimeout})
	d.out.Arm(timerRemember, d.now.Mono.Add(rememberTimeout))
}

// recordWritten takes the answer of the disk.
func (d *memory) recordWritten(err error) {
	d.call = 0
	d.out.Disarm(timerRemember)
	switch {
	case err == nil:
	case errors.Is(err, ErrRecordLost):
		d.durable = false
		d.out.Decide("disk", d.self.String(), "lost", fmt.Sprintf("%v: after a restart this node speaks for no voter", err))
		d.out.Publish(RecordLost{Reason: err.Error()})
	default:
		d.stop(component.StopDisk, fmt.Sprintf("its record can be neither written nor removed, and an old one would speak for a time long past: %v", err))
		return
	}
	d.kept = d.writing
	d.whenKept()
	d.writeRecord()
}

// rememberState puts the voters of the state in the record.
func (d *memory) rememberState() {
	if d.phase == phaseMember {
		config := d.state.Config()
		d.remember(d.wanted.recordOf(d.state, d.surveyed.known == config.Generation()))
	}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// CallRemember is the kind of the calls that put a [Record] on disk. An answer
// without an error says that the record outlives the process and the machine.
const CallRemember = "remember"

// ErrRecordLost is wrapped by the error of a [CallRemember] that could not write,
// but removed the record that was there: nothing speaks for a time long past.
var ErrRecordLost = errors.New("the record could not be written and was removed")

// rememberLimit is how long a disk may take. One that hangs may hold an old record,
// or any later one: nobody knows, so that the node ends.
const rememberLimit = 5 * time.Second

// memory is the node's [Record]: what is wanted, and what is on the disk.
//
//	want ──> Call ──> kept ──> votes leave, the node enters, states are seen
//	           │
//	           ├─ removed ──> the record lives in the process alone
//	           └─ neither, or no answer ──> the node ends
type memory struct {
	durable bool   // A disk keeps the record.
	kept    Record // What is on the disk, or in the process if there is none.
	wanted  Record // The newest record.
	writing Record // What the call writes.
	call    machine.CallID
}

// busy reports whether a write is under way.
func (d *memory) busy() bool { return d.call != 0 }

// remember makes r the newest record. What depends on it goes on when it is kept.
func (m *Machine) remember(r Record) {
	if r.equal(m.memory.wanted) {
		return
	}
	m.memory.wanted = r
	m.writeRecord()
}

// writeRecord begins to write what is wanted, one write at a time.
func (m *Machine) writeRecord() {
	d := &m.memory
	switch {
	case d.busy() || d.wanted.equal(d.kept):
		return
	case !d.durable:
		d.kept = d.wanted
		m.recordKept()
		return
	}
	d.writing, d.call = d.wanted, m.nextCall()
	m.out.Add(machine.Call{ID: d.call, Kind: CallRemember, Request: d.writing, Limit: rememberLimit})
	m.out.Arm(timerRemember, m.now.Mono.Add(rememberLimit))
}

// recordWritten is the answer of the disk.
func (m *Machine) recordWritten(err error) {
	d := &m.memory
	d.call = 0
	m.out.Disarm(timerRemember)
	switch {
	case err == nil:
	case errors.Is(err, ErrRecordLost):
		d.durable = false
		m.out.Decide("disk", m.self.String(), "lost", fmt.Sprintf("%v: after a restart this node speaks for no voter", err))
		m.out.Publish(RecordLost{Reason: err.Error()})
	default:
		m.stop(component.StopDisk, fmt.Sprintf("its record can be neither written nor removed, and an old one would speak for a time long past: %v", err))
		return
	}
	d.kept = d.writing
	m.recordKept()
	m.writeRecord()
}

// recordKept lets go on what has waited for the record.
func (m *Machine) recordKept() {
	switch m.phase {
	case phaseJoining:
		m.castVotes()
		m.askVotes()
		m.enterIfKept()
	case phaseMember:
		m.state = m.markSeen(m.state)
	case phaseIdle, phaseStopped:
	}
}

// rememberState keeps what the state says about voters.
func (m *Machine) rememberState() {
	if m.phase == phaseMember {
		config := m.state.Config()
		m.remember(m.memory.wanted.recordOf(m.state, m.footing.converged == config.Generation()))
	}
}

// markSeen marks a state that this node has made its own as seen by it, once the state's
// voters are in its record: others count on it that a node remembers, after a restart
// too, the voters that it has seen. Until then the mark is taken off.
func (m *Machine) markSeen(s *gossip.State) *gossip.State {
	if m.memory.kept.holds(s) {
		return s.See(m.self)
	}
	return s.Unsee(m.self)
}

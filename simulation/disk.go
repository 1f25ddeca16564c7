// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Disks say what happens to the disks of nodes. Every address has one disk, which
// outlives the nodes there. A node writes it by a call of a kind given to
// [World.Keeps]: the request is the whole new content, opaque to the world, and no
// error in the answer says that it is synced.
//
//	call ──> under way ──> answered ──────────> it holds the request
//	             ├─> fails, or hangs to its limit ─> the request or what it held before
//	             └─> the node ends ────────────> the same, or unreadable
type Disks struct {
	// Min and Max bound how long a write takes, drawn evenly. Both zero: 1 to 20
	// milliseconds.
	Min, Max time.Duration

	// Hang is the chance that a write is not answered before its limit.
	Hang float64

	// Fail is the chance that a write is answered with an error.
	Fail float64

	// Tear is the chance that a write under way when its node ends leaves the disk
	// unreadable.
	Tear float64
}

// Disk is what a node finds on its disk when it starts.
type Disk struct {
	// Value is the request of the last write, nil when the disk is empty.
	Value any
}

// disk is the disk at one address.
type disk struct {
	held    []any // What was written, oldest first; the last one is what it holds.
	torn    bool  // It cannot be read.
	pending any   // What is being written, nil for nothing.
	emptied bool  // It has lost once what it held.
	older   bool  // It has held once what it had held before.
}

// disksKept is how many earlier contents a disk can come back with.
const disksKept = 16

// disks is what a world knows about disks.
type disks struct {
	source *rand.Rand
	usual  Disks
	at     map[gossip.Address]Disks
	kinds  map[string]error // What a failed write that emptied the disk answers.
}

func newDisks(source *rand.Rand, usual Disks) disks {
	return disks{source: source, usual: usual, at: make(map[gossip.Address]Disks), kinds: make(map[string]error)}
}

// of returns what can happen to the disk at an address.
func (d *disks) of(a gossip.Address) Disks {
	if faults, ok := d.at[a]; ok {
		return faults
	}
	return d.usual
}

// Keeps says that calls of a kind write the disk at the address of the node. Of the
// writes that fail every other one empties the disk and answers emptied.
func (w *World) Keeps(kind string, emptied error) {
	w.disks.kinds[kind] = emptied
	w.Answer(kind, func(*Node, any) (any, error) { return nil, nil }) //nolint:nilnil // It is written, there is nothing to tell.
}

// SetDisks changes what happens to disks from now on, at every address.
func (w *World) SetDisks(d Disks) {
	w.disks.usual = d
	clear(w.disks.at)
	w.Log("disks %+v", d)
}

// SetDisksAt changes what happens to the disk at an address, until the next
// [World.SetDisks].
func (w *World) SetDisksAt(a gossip.Address, d Disks) {
	w.disks.at[a] = d
	w.Log("disk at %v %+v", a, d)
}

// DisksAt returns what can happen to the disk at an address.
func (w *World) DisksAt(a gossip.Address) Disks { return w.disks.of(a) }

// LoseDisk empties the disk at an address.
func (w *World) LoseDisk(a gossip.Address) {
	w.place(a).disk.empty()
	w.Log("disk at %v is lost", a)
}

// AgeDisk has the disk at an address hold what it held so many writes ago, like a
// backup that was restored. It reports whether that is another content.
func (w *World) AgeDisk(a gossip.Address, writes int) bool {
	d := &w.place(a).disk
	if writes < 1 || len(d.held) <= writes {
		return false
	}
	d.held, d.older = d.held[:len(d.held)-writes], true
	w.Log("disk at %v is %d writes older", a, writes)
	return true
}

// TearDisk makes the disk at an address unreadable.
func (w *World) TearDisk(a gossip.Address) {
	w.place(a).disk.torn = true
	w.Log("disk at %v is torn", a)
}

// read returns what a node finds on its disk. No node starts on one that cannot be
// read, until somebody has emptied it: that is what happens here.
func (w *World) read(p *place) Disk {
	d := &p.disk
	if d.torn {
		w.Log("disk at %v cannot be read and is emptied", p.address)
		d.torn = false
		d.empty()
	}
	if len(d.held) == 0 {
		return Disk{}
	}
	return Disk{Value: d.held[len(d.held)-1]}
}

// chances returns what can happen to a call: of a strategy, or of a disk.
func (w *World) chances(n *Node, kind string) Calls {
	if w.disks.keeps(kind) {
		d := w.disks.of(n.place.address)
		return Calls{Min: d.Min, Max: d.Max, Hang: d.Hang, Fail: d.Fail}
	}
	if calls, ok := w.strategies.at[n.place.address]; ok {
		return calls
	}
	return w.opt.Calls
}

// writing begins a write, if a call is one.
func (w *World) writing(n *Node, c machine.Call, f fate) {
	if w.disks.keeps(c.Kind) && f.name != fateBusy {
		n.place.disk.pending = c.Request
	}
}

// keeps reports whether calls of a kind write disks.
func (d *disks) keeps(kind string) bool {
	_, ok := d.kinds[kind]
	return ok
}

// written ends a write, and returns what it answers. What has failed may be on the
// disk all the same, or the disk may be empty then, which is told.
func (w *World) written(n *Node, kind string, err error) error {
	d := &n.place.disk
	if !w.disks.keeps(kind) || d.pending == nil {
		return err
	}
	if errors.Is(err, ErrCallFailed) && w.disks.source.IntN(2) == 0 {
		d.empty()
		d.pending = nil
		return w.disks.kinds[kind]
	}
	d.end(err == nil || w.disks.source.IntN(2) == 0)
	return err
}

// interrupted ends the write that was under way when a node ended.
func (w *World) interrupted(n *Node) {
	d := &n.place.disk
	if d.pending == nil {
		return
	}
	if tear := w.disks.of(n.place.address).Tear; tear > 0 && w.disks.source.Float64() < tear {
		w.TearDisk(n.place.address)
	}
	d.end(w.disks.source.IntN(2) == 0)
}

// empty takes away what a disk holds.
func (d *disk) empty() {
	d.emptied = d.emptied || len(d.held) > 0
	d.held = nil
}

// Forgetful reports whether some disk has come back older, or at least half of those at
// some addresses have lost once what they held.
func (w *World) Forgetful(of []gossip.Address) bool {
	lost := 0
	for _, a := range of {
		if w.place(a).disk.emptied {
			lost++
		}
	}
	return 2*lost >= len(of) || slices.ContainsFunc(w.places, func(p *place) bool { return p.disk.older })
}

// end ends the write under way. Done says that it has reached the disk.
func (d *disk) end(done bool) {
	if done {
		d.held = append(d.held, d.pending)
		d.held = d.held[max(len(d.held)-disksKept, 0):]
	}
	d.pending = nil
}

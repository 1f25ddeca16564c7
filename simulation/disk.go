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

// Disks that outlive nodes. A write is a call of a strategy whose outcome says when it is
// answered; writing begins it, written or interrupted ends it and decides what the
// disk then holds. A starting node reads the disk. The faults (Lose, Age, Tear) change
// what the disk holds.

// Disks are the disks of a world; [World.Disks] returns them. Every address has one
// disk, which outlives the nodes there. A node writes its disk by a call to a port
// given to [Disks.Keep]: the request is the whole new content, opaque to the world,
// and an answer without an error says that the content is synced.
//
//	call ──> under way ──> answered ──────────> it holds the request
//	             ├─> fails, or hangs to its limit ─> the request or what it held before
//	             └─> the node ends ────────────> the same, or unreadable
type Disks struct {
	world  *World
	source *rand.Rand
	usual  Writes
	at     map[gossip.Address]Writes
	ports  map[string]error // Ports whose calls write disks, with the error of a write that emptied one.
}

func newDisks(w *World, opt *Options) *Disks {
	return &Disks{
		world: w, source: source(opt.Seed, 5), usual: opt.Disks,
		at: make(map[gossip.Address]Writes), ports: make(map[string]error),
	}
}

// Writes are the chances of what can happen to writes to disks.
type Writes struct {
	// Min and Max bound how long a write takes, drawn evenly between them. Both zero:
	// 1 to 20 milliseconds.
	Min, Max time.Duration

	// Hang is the chance that a write is not answered before its limit.
	Hang float64

	// Fail is the chance that a write is answered with an error.
	Fail float64

	// Tear is the chance that a write under way when its node ends leaves the disk
	// unreadable.
	Tear float64
}

// Disk is the content of a disk that a starting node reads.
type Disk struct {
	// Value is the request of the last write, nil when the disk is empty.
	Value any
}

// Keep makes calls to a port write the disk at the address of the calling node. A
// write that fails empties the disk by a chance of one in two, and is then answered
// with the error emptied.
func (d *Disks) Keep(port string, emptied error) {
	d.ports[port] = emptied
	d.world.strategies.Answer(port, func(*Node, any) (any, error) { return nil, nil }) // A write has no result.
}

// keeps reports whether calls to a port write disks.
func (d *Disks) keeps(port string) bool {
	_, ok := d.ports[port]
	return ok
}

// At returns the chances of writes at an address.
func (d *Disks) At(a gossip.Address) Writes {
	if writes, ok := d.at[a]; ok {
		return writes
	}
	return d.usual
}

// Set changes the chances of writes from now on, at every address.
func (d *Disks) Set(to Writes) {
	d.usual = to
	clear(d.at)
	d.world.Log("disks %+v", to)
}

// SetAt changes the chances of writes at an address, until the next [Disks.Set].
func (d *Disks) SetAt(a gossip.Address, to Writes) {
	d.at[a] = to
	d.world.Log("disk at %v %+v", a, to)
}

// Lose empties the disk at an address.
func (d *Disks) Lose(a gossip.Address) {
	d.world.place(a).disk.empty()
	d.world.Log("disk at %v is lost", a)
}

// Age sets the disk at an address back to its content before the given number of
// writes, like a restored backup. It returns false, and does nothing, when that
// content is not kept.
func (d *Disks) Age(a gossip.Address, writes int) bool {
	disk := &d.world.place(a).disk
	if writes < 1 || len(disk.held) <= writes {
		return false
	}
	disk.held, disk.older = disk.held[:len(disk.held)-writes], true
	d.world.Log("disk at %v is %d writes older", a, writes)
	return true
}

// Tear makes the disk at an address unreadable.
func (d *Disks) Tear(a gossip.Address) {
	d.world.place(a).disk.torn = true
	d.world.Log("disk at %v is torn", a)
}

// Forgetful reports whether any disk has been set back, or at least half of the disks
// at the given addresses have once lost their content.
func (d *Disks) Forgetful(of []gossip.Address) bool {
	lost := 0
	for _, a := range of {
		if d.world.place(a).disk.emptied {
			lost++
		}
	}
	return 2*lost >= len(of) || slices.ContainsFunc(d.world.places, func(p *place) bool { return p.disk.older })
}

// read returns the content of a disk for a node that starts. A node never starts on an
// unreadable disk before an operator has emptied it, so read empties it.
func (d *Disks) read(p *place) Disk {
	disk := &p.disk
	if disk.torn {
		d.world.Log("disk at %v cannot be read and is emptied", p.address)
		disk.torn = false
		disk.empty()
	}
	if len(disk.held) == 0 {
		return Disk{}
	}
	return Disk{Value: disk.held[len(disk.held)-1]}
}

// writing begins a write, if the call is to a port that writes disks.
func (d *Disks) writing(n *Node, c machine.Call, f outcome) {
	if d.keeps(c.Port) && f.name != outcomeBusy {
		n.place.disk.pending = c.Request
	}
}

// written ends a write, and returns the error that it is answered with. A write that
// failed may be on the disk nevertheless, or may have emptied the disk, in which case
// the error says so.
func (d *Disks) written(n *Node, port string, err error) error {
	disk := &n.place.disk
	if !d.keeps(port) || disk.pending == nil {
		return err
	}
	if errors.Is(err, ErrCallFailed) && d.source.IntN(2) == 0 {
		disk.empty()
		disk.pending = nil
		return d.ports[port]
	}
	disk.end(err == nil || d.source.IntN(2) == 0)
	return err
}

// interrupted ends the write that was under way when a node ended.
func (d *Disks) interrupted(n *Node) {
	disk := &n.place.disk
	if disk.pending == nil {
		return
	}
	if tear := d.At(n.place.address).Tear; tear > 0 && d.source.Float64() < tear {
		d.Tear(n.place.address)
	}
	disk.end(d.source.IntN(2) == 0)
}

// disk is the disk at one address.
type disk struct {
	held    []any // The last contents, oldest first; the last one is the present content.
	torn    bool  // The disk is unreadable.
	pending any   // The content being written; nil: no write is under way.
	emptied bool  // The disk has once lost its content.
	older   bool  // The disk was once set back to an earlier content.
}

// disksKept is how many contents of a disk are kept, to which it can be set back.
const disksKept = 16

// empty removes the content of a disk.
func (d *disk) empty() {
	d.emptied = d.emptied || len(d.held) > 0
	d.held = nil
}

// end ends the write under way. Done says that the new content has reached the disk.
func (d *disk) end(done bool) {
	if done {
		d.held = append(d.held, d.pending)
		d.held = d.held[max(len(d.held)-disksKept, 0):]
	}
	d.pending = nil
}

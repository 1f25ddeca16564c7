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

// Disks are the disks of the nodes of a world: what [World.Disks] returns. Every address
// has one disk, which outlives the nodes there. A node writes it by a call to a port given
// to [Disks.Keep]: the request is the whole new content, opaque to the world, and no
// error in the answer says that it is synced.
//
//	call ──> under way ──> answered ──────────> it holds the request
//	             ├─> fails, or hangs to its limit ─> the request or what it held before
//	             └─> the node ends ────────────> the same, or unreadable
type Disks struct {
	world  *World
	source *rand.Rand
	usual  Writes
	at     map[gossip.Address]Writes
	ports  map[string]error // What a failed write that emptied the disk answers.
}

func newDisks(w *World, opt *Options) *Disks {
	return &Disks{
		world: w, source: source(opt.Seed, 5), usual: opt.Disks,
		at: make(map[gossip.Address]Writes), ports: make(map[string]error),
	}
}

// Writes say what happens to what nodes write to their disks.
type Writes struct {
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

// Keep says that calls to a port write the disk at the address of the node. Of the
// writes that fail every other one empties the disk and answers emptied.
func (d *Disks) Keep(port string, emptied error) {
	d.ports[port] = emptied
	d.world.strategies.Answer(port, func(*Node, any) (any, error) { return nil, nil }) //nolint:nilnil // It is written, there is nothing to tell.
}

// keeps reports whether calls to a port write disks.
func (d *Disks) keeps(port string) bool {
	_, ok := d.ports[port]
	return ok
}

// At returns what can happen to the disk at an address.
func (d *Disks) At(a gossip.Address) Writes {
	if writes, ok := d.at[a]; ok {
		return writes
	}
	return d.usual
}

// Set changes what happens to disks from now on, at every address.
func (d *Disks) Set(to Writes) {
	d.usual = to
	clear(d.at)
	d.world.Log("disks %+v", to)
}

// SetAt changes what happens to the disk at an address, until the next
// [Disks.Set].
func (d *Disks) SetAt(a gossip.Address, to Writes) {
	d.at[a] = to
	d.world.Log("disk at %v %+v", a, to)
}

// Lose empties the disk at an address.
func (d *Disks) Lose(a gossip.Address) {
	d.world.place(a).disk.empty()
	d.world.Log("disk at %v is lost", a)
}

// Age has the disk at an address hold what it held so many writes ago, like a
// backup that was restored. It reports whether that is another content.
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

// Forgetful reports whether some disk has come back older, or at least half of those at
// some addresses have lost once what they held.
func (d *Disks) Forgetful(of []gossip.Address) bool {
	lost := 0
	for _, a := range of {
		if d.world.place(a).disk.emptied {
			lost++
		}
	}
	return 2*lost >= len(of) || slices.ContainsFunc(d.world.places, func(p *place) bool { return p.disk.older })
}

// read returns what a node finds on its disk. No node starts on one that cannot be
// read, until somebody has emptied it: that is what happens here.
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

// writing begins a write, if a call is one.
func (d *Disks) writing(n *Node, c machine.Call, f fate) {
	if d.keeps(c.Port) && f.name != fateBusy {
		n.place.disk.pending = c.Request
	}
}

// written ends a write, and returns what it answers. What has failed may be on the
// disk all the same, or the disk may be empty then, which is told.
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
	held    []any // What was written, oldest first; the last one is what it holds.
	torn    bool  // It cannot be read.
	pending any   // What is being written, nil for nothing.
	emptied bool  // It has lost once what it held.
	older   bool  // It has held once what it had held before.
}

// disksKept is how many earlier contents a disk can come back with.
const disksKept = 16

// empty takes away what a disk holds.
func (d *disk) empty() {
	d.emptied = d.emptied || len(d.held) > 0
	d.held = nil
}

// end ends the write under way. Done says that it has reached the disk.
func (d *disk) end(done bool) {
	if done {
		d.held = append(d.held, d.pending)
		d.held = d.held[max(len(d.held)-disksKept, 0):]
	}
	d.pending = nil
}

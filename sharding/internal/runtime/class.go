// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import "sync/atomic"

// Class is a part of a [Queue], with places of its own for workers.
type Class uint8

// The classes. An entity is slow if it kept its worker for long in one of its last runs: it
// sleeps, waits for something, or computes.
const (
	ClassQuick Class = iota
	ClassSlow

	classCount = 2
)

// classOf returns the class of an entity.
func classOf(slow bool) Class {
	if slow {
		return ClassSlow
	}
	return ClassQuick
}

// class is one class of a queue: the jobs that stand in it, and how many workers may do jobs of
// it at a time, which are its places.
type class[J any] struct {
	waiting atomic.Int64 // How many jobs stand in the class.

	jobs  jobRing[J]
	least int // How many places the class has for good.
	limit int // How many places it has: these, and one for each worker that was found kept.
	busy  int // How many workers do jobs of the class.
}

// fit sets the places that a class has for good. In the quick class they are the processors. In
// the slow one it is one: workers that sleep need no processor, and those that compute are to
// leave the processors to the others.
func (c *class[J]) fit(of Class, processors int) {
	c.least = 1
	if of == ClassQuick {
		c.least = processors
	}
}

// vacant reports whether a job stands in the class and a place is free.
func (c *class[J]) vacant() bool { return c.busy < c.limit && c.jobs.len() > 0 }

func (c *class[J]) push(j J) {
	c.jobs.push(j)
	c.waiting.Add(1)
}

func (c *class[J]) pop() J {
	c.waiting.Add(-1)
	return c.jobs.pop()
}

// grow adds places if so many workers are kept that fewer than least are left. The additional
// ones are doubled at least, so that a few looks find enough of them for entities that all
// block for a short time; shrink takes them away slowly.
func (c *class[J]) grow(kept int) {
	if c.limit-kept < c.least {
		c.limit = max(c.least+kept, 2*c.limit-c.least)
	}
}

// shrink takes away a quarter of the additional places.
func (c *class[J]) shrink() { c.limit = c.least + max(0, c.limit-c.least)*3/4 }

// minJobRing is the number of jobs for which a ring always keeps memory.
const minJobRing = 1024

// jobRing is a queue of jobs that reuses its memory, and gives it back when far fewer jobs wait than
// once did: each entity with work waits there after a burst.
type jobRing[J any] struct {
	ring        []J
	head, count int
}

func (r *jobRing[J]) len() int { return r.count }

func (r *jobRing[J]) push(j J) {
	if r.count == len(r.ring) {
		r.resize(max(64, 2*r.count))
	}
	r.ring[(r.head+r.count)%len(r.ring)] = j
	r.count++
}

func (r *jobRing[J]) pop() J {
	var none J
	j := r.ring[r.head]
	r.ring[r.head] = none // For the collector.
	r.head = (r.head + 1) % len(r.ring)
	r.count--
	if len(r.ring) > minJobRing && r.count < len(r.ring)/8 {
		r.resize(len(r.ring) / 4)
	}
	return j
}

// resize moves the jobs into a ring of another size, in which they have room.
func (r *jobRing[J]) resize(size int) {
	other := make([]J, size)
	n := copy(other, r.ring[r.head:min(r.head+r.count, len(r.ring))])
	copy(other[n:], r.ring[:r.count-n])
	r.ring, r.head = other, 0
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import "time"

// item is a message under way, and when it arrives at the earliest.
type item struct {
	message any
	bytes   int
	due     time.Duration
}

// pipe is one direction of a connection: it keeps the order, holds a bounded number of bytes, and delivers nothing
// while it is blocked.
type pipe struct {
	w          *World
	most       int         // How many bytes it holds before the sender waits.
	blocked    func() bool // Nothing comes through, or nobody reads, at present.
	deliver    func(any)   // Gets what arrives.
	onWritable func()      // Is called when a sender that had to wait may go on.
	queue      []item
	bytes      int
	full       bool
	pumping    bool
	closed     bool
}

// send takes a message, and reports whether there is room for another one.
func (p *pipe) send(message any, bytes int) bool {
	if p.closed {
		return true
	}
	due := p.w.Now() + p.w.upTo(3*time.Millisecond)
	if n := len(p.queue); n > 0 {
		due = max(due, p.queue[n-1].due)
	}
	p.queue = append(p.queue, item{message, bytes, due})
	p.bytes += bytes
	p.full = p.bytes > p.most
	p.pump()
	return !p.full
}

// pump delivers what is due, now or later.
func (p *pipe) pump() {
	if p.pumping || p.closed || len(p.queue) == 0 {
		return
	}
	p.pumping = true
	wait := max(p.queue[0].due-p.w.Now(), 0)
	if p.blocked() {
		wait = poll
	}
	p.w.After(wait, func() {
		p.pumping = false
		if p.closed || len(p.queue) == 0 {
			return
		}
		if head := p.queue[0]; !p.blocked() && head.due <= p.w.Now() {
			p.queue = p.queue[1:]
			p.bytes -= head.bytes
			p.deliver(head.message)
			if p.full && p.bytes <= p.most && !p.closed {
				p.full = false
				p.onWritable()
			}
		}
		p.pump()
	})
}

// end drops what is on its way.
func (p *pipe) end() { p.closed, p.queue, p.bytes = true, nil, 0 }

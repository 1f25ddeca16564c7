// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package multicast

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/quorate/quorate/discovery"
)

const (
	// answersPerSecond is how many queries are answered in a second. A network on which
	// people develop has fewer nodes.
	answersPerSecond = 200
	// pauseAfterFailure is how long the goroutine that answers waits after a read has failed:
	// a network that is down fails each read at once.
	pauseAfterFailure = 100 * time.Millisecond
)

var _ discovery.Announcer = (*Discovery)(nil)

// Announce implements [discovery.Announcer]: it starts answering queries for the service with
// this node's address, or with what the settings announce if they announce something.
func (d *Discovery) Announce(service string, self discovery.Target) error {
	if len(d.config.Announce) == 0 {
		config := d.config
		config.Service, config.Announce = service, []string{self.String()}
		if err := config.Validate(); err != nil {
			return fmt.Errorf("multicast: announce %v as %q: %w", self, service, err)
		}
		d.config = config
	}
	return d.Start()
}

// Start listens for queries of others and answers them until Close, if this node announces
// something; else it does nothing. It fails if the group cannot be joined, or if the method
// was started before or is closed.
func (d *Discovery) Start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return fmt.Errorf("multicast: %w", discovery.ErrClosed)
	case d.started:
		return errors.New("multicast: started twice")
	}
	d.started = true
	if len(d.config.Announce) == 0 {
		return nil
	}
	in, err := d.network.join(d.group, d.config.Interface)
	if err != nil {
		return fmt.Errorf("multicast: group %v: %w", d.group, err)
	}
	out, err := d.network.open(context.Background(), d.group, d.config.Interface)
	if err != nil {
		return fmt.Errorf("multicast: %w", errors.Join(err, in.Close()))
	}
	d.sockets = []socket{in, out}
	// Started here, ended by the end of its sockets in Close, which waits.
	d.running.Go(func() { d.answerAll(in, out) })
	return nil
}

// answerAll answers queries until its socket is closed.
func (d *Discovery) answerAll(in, out socket) {
	packet := make([]byte, packetBytes+1)
	b := budget{}
	for {
		size, from, err := in.ReadFromUDPAddrPort(packet)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			d.failed.Add(1)
			select {
			case <-time.After(pauseAfterFailure):
			case <-d.ended:
			}
			continue
		}
		n, service, err := readQuery(packet[:size])
		if err != nil || service != d.config.Service {
			d.strange.Add(1)
			continue
		}
		d.queries.Add(1)
		if !b.take(time.Now()) {
			d.refused.Add(1)
			continue
		}
		if _, err := out.WriteToUDPAddrPort(packAnswer(n, d.config.Announce), from); err != nil {
			d.failed.Add(1)
			continue
		}
		d.answers.Add(1)
	}
}

// budget bounds the answers of a second.
type budget struct {
	since time.Time
	used  int
}

func (b *budget) take(now time.Time) bool {
	if now.Sub(b.since) >= time.Second {
		b.since, b.used = now, 0
	}
	b.used++
	return b.used <= answersPerSecond
}

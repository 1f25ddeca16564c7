// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package multicast

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// The network first, then its sockets, which wait for datagrams until their deadline.

// memoryNetwork is a network in memory with groups, loss, strangers who send what they like,
// and failures. Its sockets wait in virtual time.
type memoryNetwork struct {
	mu      sync.Mutex
	next    uint16
	sockets map[netip.AddrPort]*memorySocket
	members map[*memorySocket]netip.AddrPort
	// lose says whether a datagram gets lost on its way.
	lose func(packet []byte, from, to netip.AddrPort) bool
	// failingReads is how many reads of sockets of groups fail.
	failingReads int
	// broken is the error of every call, if it is set.
	broken error
	// v6 makes addresses those of IPv6.
	v6 bool
}

func newMemoryNetwork() *memoryNetwork {
	return &memoryNetwork{
		sockets: map[netip.AddrPort]*memorySocket{}, members: map[*memorySocket]netip.AddrPort{},
	}
}

type datagram struct {
	packet []byte
	from   netip.AddrPort
}

type memorySocket struct {
	network *memoryNetwork
	addr    netip.AddrPort
	arrived chan datagram // As large as the buffer of a real socket; datagrams beyond that are lost.
	closed  chan struct{}
	once    sync.Once

	mu        sync.Mutex
	expired   chan struct{} // Closed when the deadline is over.
	over      bool
	deadlines int // How many deadlines were set: only the last counts.
}

// addr is the address of the socket with a number, each on a machine of its own.
func (n *memoryNetwork) addr() netip.AddrPort {
	n.next++
	high, low := byte(n.next>>8), byte(n.next)
	if n.v6 {
		a := netip.MustParseAddr("fe80::1").As16()
		a[14], a[15] = high, low
		return netip.AddrPortFrom(netip.AddrFrom16(a).WithZone("eth0"), 40_000)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, high, low}), 40_000)
}

func (n *memoryNetwork) open(context.Context, netip.AddrPort, string) (socket, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.broken != nil {
		return nil, n.broken
	}
	s := &memorySocket{
		network: n, addr: n.addr(), arrived: make(chan datagram, 2000),
		closed: make(chan struct{}), expired: make(chan struct{}),
	}
	n.sockets[s.addr] = s
	return s, nil
}

func (n *memoryNetwork) join(group netip.AddrPort, name string) (socket, error) {
	s, err := n.open(context.Background(), group, name)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.members[s.(*memorySocket)] = group
	return s, nil
}

// send delivers a datagram to a socket, or to all sockets of a group.
func (n *memoryNetwork) send(packet []byte, from, to netip.AddrPort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	receivers := []*memorySocket{n.sockets[to]}
	if to.Addr().IsMulticast() {
		receivers = nil
		for s, group := range n.members {
			if group == to {
				receivers = append(receivers, s)
			}
		}
	}
	for _, s := range receivers {
		if s == nil || n.lose != nil && n.lose(packet, from, s.addr) {
			continue
		}
		select {
		case s.arrived <- datagram{append([]byte{}, packet...), from}:
		default:
		}
	}
}

func (s *memorySocket) WriteToUDPAddrPort(packet []byte, to netip.AddrPort) (int, error) {
	s.network.send(packet, s.addr, to)
	return len(packet), nil
}

func (s *memorySocket) ReadFromUDPAddrPort(packet []byte) (int, netip.AddrPort, error) {
	s.mu.Lock()
	expired := s.expired
	s.mu.Unlock()
	select {
	case <-s.closed:
		return 0, netip.AddrPort{}, net.ErrClosed
	case <-expired:
		return 0, netip.AddrPort{}, os.ErrDeadlineExceeded
	default:
	}
	if s.fails() {
		return 0, netip.AddrPort{}, errUnplugged
	}
	select {
	case d := <-s.arrived:
		return copy(packet, d.packet), d.from, nil
	case <-s.closed:
		return 0, netip.AddrPort{}, net.ErrClosed
	case <-expired:
		return 0, netip.AddrPort{}, os.ErrDeadlineExceeded
	}
}

func (s *memorySocket) fails() bool {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	if _, member := s.network.members[s]; !member || s.network.failingReads == 0 {
		return false
	}
	s.network.failingReads--
	return true
}

// SetReadDeadline also ends a read that is under way.
func (s *memorySocket) SetReadDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadlines++
	number := s.deadlines
	if s.over {
		s.over, s.expired = false, make(chan struct{})
	}
	if after := time.Until(at); after > 0 {
		time.AfterFunc(after, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if number == s.deadlines {
				s.over = true
				close(s.expired)
			}
		})
		return nil
	}
	s.over = true
	close(s.expired)
	return nil
}

func (s *memorySocket) Close() error {
	err := errors.New("closed twice")
	s.once.Do(func() {
		s.network.mu.Lock()
		defer s.network.mu.Unlock()
		delete(s.network.sockets, s.addr)
		delete(s.network.members, s)
		close(s.closed)
		err = nil
	})
	return err
}

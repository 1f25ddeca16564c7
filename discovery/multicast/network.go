// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package multicast

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// network opens sockets: those of the operating system, or of a network in memory.
type network interface {
	// join returns a socket that receives the datagrams to the group.
	join(group netip.AddrPort, interfaceName string) (socket, error)
	// open returns a socket that sends to the group, and receives the answers.
	open(ctx context.Context, group netip.AddrPort, interfaceName string) (socket, error)
}

// socket has the methods of a [net.UDPConn] that this package uses.
type socket interface {
	ReadFromUDPAddrPort(packet []byte) (int, netip.AddrPort, error)
	WriteToUDPAddrPort(packet []byte, to netip.AddrPort) (int, error)
	SetReadDeadline(at time.Time) error
	Close() error
}

// udpNetwork is the network of this machine.
type udpNetwork struct{}

func (udpNetwork) join(group netip.AddrPort, interfaceName string) (socket, error) {
	outlet, err := interfaceByName(interfaceName)
	if err != nil {
		return nil, err
	}
	return net.ListenMulticastUDP(family(group), outlet, net.UDPAddrFromAddrPort(group))
}

func (udpNetwork) open(ctx context.Context, group netip.AddrPort, interfaceName string) (socket, error) {
	outlet, err := interfaceByName(interfaceName)
	if err != nil {
		return nil, err
	}
	var config net.ListenConfig
	packets, err := config.ListenPacket(ctx, family(group), ":0")
	if err != nil {
		return nil, err
	}
	conn, ok := packets.(*net.UDPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("a %T is no socket for datagrams", packets), packets.Close())
	}
	if err := aim(conn, group, outlet); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// aim makes datagrams to the group leave by one interface, go no further than its network,
// and reach this machine too.
func aim(conn *net.UDPConn, group netip.AddrPort, outlet *net.Interface) error {
	if group.Addr().Is4() {
		p := ipv4.NewPacketConn(conn)
		err := errors.Join(p.SetMulticastTTL(1), p.SetMulticastLoopback(true))
		if outlet != nil {
			err = errors.Join(err, p.SetMulticastInterface(outlet))
		}
		return err
	}
	p := ipv6.NewPacketConn(conn)
	err := errors.Join(p.SetMulticastHopLimit(1), p.SetMulticastLoopback(true))
	if outlet != nil {
		err = errors.Join(err, p.SetMulticastInterface(outlet))
	}
	return err
}

func family(group netip.AddrPort) string {
	if group.Addr().Is4() {
		return "udp4"
	}
	return "udp6"
}

// interfaceByName returns nil for no name: the operating system chooses.
func interfaceByName(name string) (*net.Interface, error) {
	if name == "" {
		return nil, nil // For the standard library nil means that no interface was chosen.
	}
	outlet, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("interface %q: %w", name, err)
	}
	return outlet, nil
}

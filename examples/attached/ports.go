// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package attached

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are ports of 127.0.0.1 for nodes that are about to start.
type Ports struct {
	// Numbers are the ports, in no order.
	Numbers []int

	held []net.PacketConn
}

// ReservePorts finds n TCP ports of 127.0.0.1 that are free. They lie below the range from which
// systems take the ports of outgoing connections, so that no connection takes a port before
// its node does. Until Close nobody else is given one of them who asks here, in this process or
// another one: the UDP port of the same number, which no node uses, is held meanwhile.
func ReservePorts(n int) (*Ports, error) {
	p := &Ports{}
	for range 1000 {
		if p.reserve(20_000 + rand.IntN(10_000)); len(p.Numbers) == n {
			return p, nil
		}
	}
	p.Close()
	return nil, fmt.Errorf("found no %d free ports from 20000 to 29999", n)
}

// reserve takes a port if it is free.
func (p *Ports) reserve(port int) {
	var listen net.ListenConfig
	address := fmt.Sprintf("127.0.0.1:%d", port)
	held, err := listen.ListenPacket(context.Background(), "udp", address)
	if err != nil {
		return
	}
	l, err := listen.Listen(context.Background(), "tcp", address)
	if err != nil {
		_ = held.Close() // Nothing was sent.
		return
	}
	_ = l.Close() // Nobody has connected.
	p.Numbers, p.held = append(p.Numbers, port), append(p.held, held)
}

// Close gives the ports back. Calling it again does nothing.
func (p *Ports) Close() {
	for _, held := range p.held {
		_ = held.Close() // Nothing was sent.
	}
	p.held = nil
}

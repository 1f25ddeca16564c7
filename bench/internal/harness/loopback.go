// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// Addresses on this machine are found, and connected to.

// Listen listens on a free port of the loopback interface.
func Listen(ctx context.Context) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
}

// Dial connects to an address.
func Dial(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// FreeAddresses finds n free addresses.
func FreeAddresses(ctx context.Context, n int) (addresses []string, err error) {
	for port := FirstPort; len(addresses) < n && port < lastPort; port++ {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if IsFree(ctx, address) {
			addresses = append(addresses, address)
		}
	}
	if len(addresses) < n {
		return nil, fmt.Errorf("bench: %d of the ports from %d to %d are free, %d are needed", len(addresses), FirstPort, lastPort, n)
	}
	return addresses, nil
}

// The ports for many nodes lie below those that systems give to outgoing connections:
// otherwise the connection of a started node could take the port of another that has not
// started.
const (
	FirstPort = 20_000
	lastPort  = 32_000
)

// IsFree reports whether an address can be listened on.
func IsFree(ctx context.Context, address string) bool {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	return err == nil && l.Close() == nil
}

// FreeAddress finds one free address.
func FreeAddress(ctx context.Context) (string, error) {
	l, err := Listen(ctx)
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

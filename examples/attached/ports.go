// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package attached

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
)

// FreePorts finds n ports of 127.0.0.1 that are free. They lie below the range from which
// systems take the ports of outgoing connections, so that no connection takes a port before
// its node does.
func FreePorts(n int) ([]int, error) {
	var ports []int
	for range 1000 {
		port := 20_000 + rand.IntN(10_000)
		if slices.Contains(ports, port) {
			continue
		}
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("found no %d free ports from 20000 to 29999", n)
}

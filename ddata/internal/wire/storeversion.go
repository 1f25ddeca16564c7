// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/machine/wire"
)

// The tables of the message about a store that is older than others remember, and of what a durable replica remembers
// of the stores of others.

func olderStore(m *protocol.OlderStore, c *wire.Codec) {
	wire.Fixed(c, 1, &m.Of)
	wire.Uint(c, 2, &m.Written, math.MaxUint64)
}

func storeVersion(m *protocol.StoreVersion, c *wire.Codec) {
	wire.Fixed(c, 1, &m.ID)
	wire.Fixed(c, 2, &m.UID)
	wire.Uint(c, 3, &m.Written, math.MaxUint64)
	wire.Uint(c, 4, &m.Before, math.MaxUint64)
}

// checkStoreVersions refuses versions of stores that are not sorted by id, each id once.
func checkStoreVersions(all []protocol.StoreVersion) error {
	last := protocol.ReplicaID(0)
	for _, s := range all {
		if s.ID <= last {
			return wire.Malformed("stores of replicas out of order")
		}
		last = s.ID
	}
	return nil
}

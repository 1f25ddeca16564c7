// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package background

import (
	"strconv"
	"strings"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// IDs returns the ids of n instances: instance i is the only one in shard i of n. So the id of an instance is the
// first of i, i/1, i/2 and so on with that shard.
func IDs(n int) []string {
	all := make([]string, n)
	for i := range all {
		number := strconv.Itoa(i)
		all[i] = number
		for more := 1; protocol.ShardOf(all[i], uint32(n)) != protocol.ShardID(i); more++ { // Callers bound n.
			all[i] = number + "/" + strconv.Itoa(more)
		}
	}
	return all
}

// numberOf returns the number in the id of an instance.
func numberOf(id string) string {
	number, _, _ := strings.Cut(id, "/")
	return number
}

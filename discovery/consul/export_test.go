// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consul

import (
	"time"

	"github.com/quorate/quorate/discovery/follow"
)

// NewWith is [New] with the limits and the least distance of requests given.
func NewWith(config Config, limits follow.Limits, gap time.Duration) (*Discovery, error) {
	return newDiscovery(config, limits, gap)
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import "github.com/quorate/quorate/discovery/follow"

// NewIn is [New] with the directory of the service account and the limits given.
func NewIn(config Config, account string, limits follow.Limits) (*Discovery, error) {
	return newDiscovery(config, account, limits)
}

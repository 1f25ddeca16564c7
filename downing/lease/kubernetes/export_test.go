// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

// NewIn is New in a pod whose credentials are in a directory.
func NewIn(config Config, account string) (*Store, error) { return newStore(config, account) }

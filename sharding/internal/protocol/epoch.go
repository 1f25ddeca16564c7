// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/epoch"
)

// Term numbers the coordinators of a kind: later ones have higher terms.
type Term = singleton.Term

// Epoch numbers the homes of a shard: each home has a higher epoch than the ones before. The zero value is none, and
// below all others.
type Epoch = epoch.Epoch

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddatasim

import (
	"github.com/quorate/quorate/ddata/internal/simulation"
	world "github.com/quorate/quorate/simulation"
)

// Replicas are replicas of durable keys in a world whose nodes run membership and more: for worlds in which another
// component reads replicated data. They check nothing by themselves.
type Replicas = simulation.Replicas

// Of how many replicas a read of [Replicas] waits for the answers.
const (
	One      = simulation.One
	Majority = simulation.Majority
	All      = simulation.All
)

// ErrAway says that a node is not, or not yet, a replica that holds a key.
var ErrAway = simulation.ErrAway

// NewReplicas adds replicas to a world that has no nodes yet. The component of each node is what
// [Replicas.Component] returns.
func NewReplicas(w *world.World) *Replicas { return simulation.NewReplicas(w) }

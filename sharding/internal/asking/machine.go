// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package asking

import (
	"context"

	"github.com/quorate/quorate/machine"
)

// Machine puts questions to a machine by its driver. It is safe for concurrent use.
type Machine struct {
	*machine.Handle

	over      <-chan struct{}
	questions Questions[any]
}

// NewMachine returns what asks a machine until over is closed.
func NewMachine(handle *machine.Handle, over <-chan struct{}) *Machine {
	return &Machine{Handle: handle, over: over}
}

// Ask hands the machine an input, once there is room for it, and waits for what it answers under the id. There is no
// answer, and ok is false, if ctx or the machine ends first.
func (m *Machine) Ask(ctx context.Context, input func(id uint64) machine.Input) (answer any, ok bool) {
	return m.questions.Ask(ctx, m.over, func(id uint64) error { return m.PostWait(ctx, input(id)) })
}

// Answer answers the question of an id, if somebody still waits. It does not block.
func (m *Machine) Answer(id uint64, answer any) { m.questions.Answer(id, answer) }

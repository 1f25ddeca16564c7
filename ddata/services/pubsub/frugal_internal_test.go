// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"testing"

	"github.com/quorate/quorate/internal/patience/frugal"
)

// counted counts what a frame has in it, and keeps nothing.
type counted int

func (n *counted) message(*message)     { *n++ }
func (n *counted) signal(string, state) { *n++ }

// What others publish costs no more than it has bytes, times a small number, before a topic takes it.
func TestDecodersAreFrugal(t *testing.T) {
	messages := frame([]message{{"prices", []byte("1"), []string{"a", "b"}, true}, {"prices", []byte("2"), nil, false}})
	frugal.Require(t, func(b []byte) { _ = readFrame(b, new(counted)) }, messages, appendSignal(nil, "prices", blocking))
}

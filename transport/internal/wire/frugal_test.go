// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/patience/frugal"
	"github.com/quorate/quorate/transport/internal/wire"
)

// What others send costs no more than it has bytes, times a small number.
func TestDecodersAreFrugal(t *testing.T) {
	seeds := slices.Collect(maps.Values(golden()))
	frugal.Require(t, func(b []byte) { _, _ = wire.ParseHello(b) }, seeds...)
	frugal.Require(t, func(b []byte) { _, _ = wire.ParseDownstream(b) }, seeds...)
	frugal.Require(t, func(b []byte) { _, _ = wire.ParseFrame(b) }, seeds...)
	frugal.Require(t, func(b []byte) { _, _ = wire.ParseSaid(b) }, seeds...)
}

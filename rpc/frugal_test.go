// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"testing"

	"github.com/quorate/quorate/internal/patience/frugal"
	"github.com/quorate/quorate/rpc"
)

// What others send costs no more than its bytes, times a small number.
func TestDecodersAreFrugal(t *testing.T) {
	frugal.Require(t, func(b []byte) { _, _, _, _ = rpc.DecodeCall(b) })
	frugal.Require(t, func(b []byte) { _ = new(rpc.Reply).Decode(b) })
}

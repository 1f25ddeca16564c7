// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"testing"

	"github.com/quorate/quorate/internal/patience/frugal"
)

// What others send costs no more than its bytes, times a small number.
func TestDecodersAreFrugal(t *testing.T) {
	frugal.Require(t, func(b []byte) { _, _ = decode("name", "place", b) })
}

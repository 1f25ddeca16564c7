// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"

	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
	"github.com/quorate/quorate/internal/patience/frugal"
)

// What others send costs no more than its bytes, times a small number.
func TestDecodersAreFrugal(t *testing.T) {
	frugal.Require(t, func(b []byte) { _ = eachRequest(b, func(*clientv1.Request) error { return nil }) })
	r := new(clientv1.Request)
	frugal.Require(t, func(b []byte) { _ = decodeRequest(b, r) })
}

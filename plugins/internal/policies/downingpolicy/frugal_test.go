// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downingpolicy_test

import (
	"testing"

	"github.com/quorate/quorate/plugins/internal/policies/downingpolicy"
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// What a plugin answers costs no more than it has bytes, times a small number.
func TestAnswersAreDecodedFrugally(t *testing.T) {
	wiretest.FrugalTrial(t, downingpolicy.Contract().Policy(), &pluginv1.DowningDecideResponse{Verdict: pluginv1.Verdict_VERDICT_KEEP_SIDE, Down: []uint32{2}, Reason: "kept"})
}

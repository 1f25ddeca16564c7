// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package joindeciderpolicy_test

import (
	"testing"

	"github.com/quorate/quorate/plugins/internal/policies/joindeciderpolicy"
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// What a plugin answers costs no more than it has bytes, times a small number.
func TestAnswersAreDecodedFrugally(t *testing.T) {
	wiretest.FrugalTrial(t, joindeciderpolicy.Contract().Policy(), &pluginv1.JoinDeciderDecideResponse{Action: pluginv1.JoinAction_JOIN_ACTION_FORM, Reason: "all answer"})
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package reminder_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Defects of what carries out the decisions; those of the decisions are found by package internal/simulation.
func TestMutantsAreCaught(t *testing.T) {
	simulationtest.RequireFound(t, ".", []simulationtest.Mutant{
		{
			Name: "deliveries of a bucket that moves are given up", Tests: []string{"TestADeliveryEndsBeforeItsBucketMoves"},
			Edits: []simulationtest.Edit{{
				File: "bucket.go", Old: "	if c.StopReason().Sole() {\n", New: "	if c.StopReason().Sole() && !mutant(NAME) {\n",
			}},
		},
		{
			Name: "a bucket does not go on when its node has standing again", Tests: []string{"TestDeliveriesEndWithTheStandingOfTheNode"},
			Edits: []simulationtest.Edit{{
				File: "bucket.go", Old: "	<-l.bucket.service.started\n", New: "	if mutant(NAME) {\n		return\n	}\n	<-l.bucket.service.started\n",
			}},
		},
		{
			Name: "every delivery counts as acknowledged", Tests: []string{"TestAReminderThatIsNotAcknowledged"},
			Edits: []simulationtest.Edit{{
				File: "bucket.go", Old: "		failure = cmp.Or(short(err.Error()), \"an error without a text\")\n", New: "		if !mutant(NAME) {\n			failure = cmp.Or(short(err.Error()), \"an error without a text\")\n		}\n",
			}},
		},
		{
			Name: "a time is rounded down", Tests: []string{"TestTimesAreRoundedUp"},
			Edits: []simulationtest.Edit{{
				File: "reminder.go", Old: "		t = t.Add(time.Millisecond)\n", New: "		if !mutant(NAME) {\n			t = t.Add(time.Millisecond)\n		}\n",
			}},
		},
	})
}

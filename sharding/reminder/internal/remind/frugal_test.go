// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remind_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience/frugal"
	"github.com/quorate/quorate/sharding/reminder/internal/remind"
)

// What others send costs no more than its bytes, times a small number.
func TestDecodersAreFrugal(t *testing.T) {
	rem := remind.Reminder{Key: remind.Key{Kind: "k", ID: "e", Name: "n"}, Due: 1767225600000, Every: 1000, Set: 7, Payload: []byte("p")}
	answer := remind.Answer{Code: remind.OK, Found: true, List: []remind.Status{{Reminder: rem, Attempts: 3, Failure: "no", Busy: true}}}
	frugal.Require(t, func(b []byte) { _, _ = remind.DecodeAnswer(b) }, remind.AppendAnswer(nil, answer))
	frugal.Require(t, func(b []byte) { _, _ = remind.DecodeAsk(b) }, remind.AppendAsk(nil, remind.Ask{Op: remind.Set, Reminder: rem}))
	frugal.Require(t, func(b []byte) { _, _ = remind.DecodeReminder(b) }, remind.AppendReminder(nil, rem))
}

// The largest list that an owner gives has room: reminders with the shortest keys, and without payloads.
func TestTheLargestListHasRoom(t *testing.T) {
	answer := remind.Answer{Code: remind.OK}
	for i := range remind.PerEntity {
		key := remind.Key{Kind: "k", ID: "e", Name: string(rune('a' + i))}
		answer.List = append(answer.List, remind.Status{Reminder: remind.Reminder{Key: key, Due: 1767225600000, Set: 1767225600000}})
	}
	got, err := remind.DecodeAnswer(remind.AppendAnswer(nil, answer))
	require.NoError(t, err)
	require.Equal(t, answer, got)
}

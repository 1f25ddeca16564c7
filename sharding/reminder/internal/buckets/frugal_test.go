// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package buckets_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience/frugal"
	"github.com/quorate/quorate/sharding/reminder/internal/buckets"
)

// What others send costs no more than its bytes, times a small number.
func TestDecodersAreFrugal(t *testing.T) {
	rem := buckets.Reminder{Key: buckets.Key{Kind: "k", ID: "e", Name: "n"}, Due: 1767225600000, Every: 1000, Set: 7, Payload: []byte("p")}
	answer := buckets.Answer{Code: buckets.OK, Found: true, List: []buckets.Status{{Reminder: rem, Attempts: 3, Failure: "no", Busy: true}}}
	frugal.Require(t, func(b []byte) { _, _ = buckets.DecodeAnswer(b) }, buckets.AppendAnswer(nil, answer))
	frugal.Require(t, func(b []byte) { _, _ = buckets.DecodeAsk(b) }, buckets.AppendAsk(nil, buckets.Ask{Op: buckets.Set, Reminder: rem}))
	frugal.Require(t, func(b []byte) { _, _ = buckets.DecodeReminder(b) }, buckets.AppendReminder(nil, rem))
}

// The largest list that an owner gives has room: reminders with the shortest keys, and without payloads.
func TestTheLargestListHasRoom(t *testing.T) {
	answer := buckets.Answer{Code: buckets.OK}
	for i := range buckets.MaxPerEntity {
		key := buckets.Key{Kind: "k", ID: "e", Name: string(rune('a' + i))}
		answer.List = append(answer.List, buckets.Status{Reminder: buckets.Reminder{Key: key, Due: 1767225600000, Set: 1767225600000}})
	}
	got, err := buckets.DecodeAnswer(buckets.AppendAnswer(nil, answer))
	require.NoError(t, err)
	require.Equal(t, answer, got)
}

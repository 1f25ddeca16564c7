// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package survey_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience/frugal"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/survey"
)

// What others send costs no more than its bytes, times a small number.
func TestDecodersAreFrugal(t *testing.T) {
	epoch := protocol.Epoch{Born: 1767225600000, N: 2}
	var seeds [][]byte
	for _, m := range []any{
		survey.Question{ID: 1, Type: survey.TypeTell, Kind: "k", Limit: time.Second, Payload: []byte("x"), Shards: []survey.Place{{Shard: 3, Epoch: epoch}}},
		survey.Answer{ID: 1, Shards: []survey.Shard{{Shard: 3, Epoch: epoch, Entities: 5, Waits: "a lease"}}, Lines: []string{"idle"}},
		survey.Answer{ID: 2, Entities: []survey.Entity{{At: survey.Cursor{Shard: 1, ID: "e"}, State: "idle"}}, Told: []survey.Told{{Shard: 3, Cut: true}}},
	} {
		b, err := survey.Codec{}.Append(nil, m)
		require.NoError(t, err)
		seeds = append(seeds, b)
	}
	frugal.Require(t, func(b []byte) { _, _ = survey.Codec{}.Decode(b) }, seeds...)
}

// The largest answers that nodes give have room: shards that host nothing, and a page of entities that were asked
// nothing.
func TestTheLargestAnswersHaveRoom(t *testing.T) {
	shards, page := survey.Answer{ID: 1}, survey.Answer{ID: 1}
	for i := range protocol.ShardID(2 * protocol.MaxShards) {
		shards.Told = append(shards.Told, survey.Told{Shard: i})
	}
	for i := range survey.MaxPageEntities {
		id := string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
		page.Entities = append(page.Entities, survey.Entity{At: survey.Cursor{ID: id}, State: "running"})
	}
	for _, a := range []survey.Answer{shards, page} {
		b, err := survey.Codec{}.Append(nil, a)
		require.NoError(t, err)
		got, err := survey.Codec{}.Decode(b)
		require.NoError(t, err)
		require.Equal(t, a, got)
	}
}

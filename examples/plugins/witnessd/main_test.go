// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func fresh(t *testing.T) *register {
	t.Helper()
	r, err := open(filepath.Join(t.TempDir(), "votes.json"), time.Hour)
	require.NoError(t, err)
	return r
}

// ask asks for the vote of "bank"; a side and its voters are words.
func ask(t *testing.T, r *register, at time.Time, side, voters string) bool {
	t.Helper()
	a, err := r.ask(request{Cluster: "bank", Side: strings.Fields(side), Voters: strings.Fields(voters)}, at)
	require.NoError(t, err)
	require.NotEmpty(t, a.Reason)
	return a.Granted
}

func TestTheFirstToAskGetsTheVote(t *testing.T) {
	r := fresh(t)
	require.True(t, ask(t, r, noon(), "a b", "a b c d"))
	require.False(t, ask(t, r, noon(), "c d", "a b c d"))
	require.True(t, ask(t, r, noon(), "a b", "a b c d"), "asked again, because the answer was lost")
	a, err := r.ask(request{Cluster: "shop", Side: []string{"c"}, Voters: []string{"c", "a"}}, noon())
	require.NoError(t, err)
	require.True(t, a.Granted, "the vote of another cluster is another vote")
}

// The loser of a split does not get the vote later, whatever became of its side.
func TestTheLoserStaysTheLoser(t *testing.T) {
	r := fresh(t)
	require.True(t, ask(t, r, noon(), "a b", "a b c d"))
	require.False(t, ask(t, r, noon().Add(59*time.Minute), "c d", "a b c d"))
	require.False(t, ask(t, r, noon().Add(59*time.Minute), "c", "a c"))
	require.True(t, ask(t, r, noon().Add(time.Hour), "c d", "a b c d"), "but it has the vote only for a time")
}

// The cluster goes on with the winners, who may split again.
func TestWinnersSplitAgain(t *testing.T) {
	r := fresh(t)
	require.True(t, ask(t, r, noon(), "a b", "a b c d"))
	require.True(t, ask(t, r, noon(), "b", "a b"))
	require.False(t, ask(t, r, noon(), "a", "a b"))
	require.False(t, ask(t, r, noon(), "c d", "a b c d"))
	require.True(t, ask(t, r, noon(), "x y", "x y z u"), "nobody of those who held the vote is left")
}

// The vote has moved on to others, of whom those who slept have never heard.
func TestALoserThatSleptWhileTheVoteMovedOnStaysTheLoser(t *testing.T) {
	r := fresh(t)
	require.True(t, ask(t, r, noon(), "a b", "a b c d"))
	require.True(t, ask(t, r, noon().Add(time.Minute), "x y", "x y z u"))
	require.False(t, ask(t, r, noon().Add(59*time.Minute), "c d", "a b c d"))
}

// A split that healed before anybody was downed leaves nobody without a vote.
func TestAfterASplitThatHealedHoldersAndLosersMayStandTogether(t *testing.T) {
	r := fresh(t)
	require.True(t, ask(t, r, noon(), "a b", "a b c d"))
	require.True(t, ask(t, r, noon().Add(time.Minute), "a c", "a b c d"))
	require.False(t, ask(t, r, noon().Add(time.Minute), "b d", "a b c d"))
	require.True(t, ask(t, r, noon().Add(2*time.Minute), "c", "a c"))
}

func TestARestartGivesTheVoteToNobodyElse(t *testing.T) {
	r := fresh(t)
	require.True(t, ask(t, r, noon(), "a b", "a b c d"))
	again, err := open(r.path, time.Hour)
	require.NoError(t, err)
	require.False(t, ask(t, again, noon(), "c d", "a b c d"))
	require.NoError(t, os.WriteFile(r.path, []byte("{"), 0o600))
	_, err = open(r.path, time.Hour)
	require.Error(t, err)
	left, err := filepath.Glob(r.path + ".*")
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAVoteThatCannotBeStoredIsNotGiven(t *testing.T) {
	r := fresh(t)
	require.NoError(t, os.RemoveAll(filepath.Dir(r.path)))
	_, err := r.ask(request{Cluster: "bank", Side: []string{"a"}, Voters: []string{"a", "b"}}, noon())
	require.Error(t, err)
	require.NoError(t, os.Mkdir(filepath.Dir(r.path), 0o700))
	require.True(t, ask(t, r, noon(), "b", "a b"), "nobody has got it")
}

// However many ask at once, one side wins.
func TestOneSideWinsAmongManyAtOnce(t *testing.T) {
	s := httptest.NewServer(fresh(t))
	defer s.Close()
	var granted [2]atomic.Int32
	var group sync.WaitGroup
	for i := range 20 {
		side := []string{"a", "b"}[i%2]
		group.Go(func() {
			body := fmt.Sprintf(`{"cluster": "bank", "side": [%q], "voters": ["a", "b"]}`, side)
			got, err := http.Post(s.URL, "application/json", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = got.Body.Close() }()
			var a answer
			if err := json.NewDecoder(got.Body).Decode(&a); err != nil {
				t.Error(err)
			}
			if a.Granted {
				granted[i%2].Add(1)
			}
		})
	}
	group.Wait()
	require.ElementsMatch(t, []int32{0, 10}, []int32{granted[0].Load(), granted[1].Load()})
}

func TestWhatIsNoRequestIsRefused(t *testing.T) {
	r := fresh(t)
	for _, body := range []string{"", "{}", `{"cluster": "bank"}`, `{"cluster": "bank", "side": ["a"], "typo": 1}`, strings.Repeat("[", 1<<20)} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		require.Equal(t, http.StatusBadRequest, w.Code)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", strings.NewReader(`{"cluster": "bank", "side": ["a"]}`)))
	require.Equal(t, http.StatusBadRequest, w.Code)
}

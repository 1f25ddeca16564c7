// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The register of votes: which side gets the vote of a cluster, and that a side which lost
// does not get it while the vote is held, case by case and for clusters at random. Then come
// votes over a restart and without a disk, and requests over HTTP.

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func fresh(t *testing.T) *register {
	t.Helper()
	r, err := open(filepath.Join(t.TempDir(), "votes.json"), time.Hour)
	require.NoError(t, err)
	return r
}

// ask asks for the vote of the cluster bank. The nodes of the side, and the voters, are
// words.
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

// The loser of a split does not get the vote while the winner holds it, for an hour here,
// whatever became of the loser's side.
func TestTheLoserStaysTheLoser(t *testing.T) {
	r := fresh(t)
	require.True(t, ask(t, r, noon(), "a b", "a b c d"))
	require.False(t, ask(t, r, noon().Add(59*time.Minute), "c d", "a b c d"))
	require.False(t, ask(t, r, noon().Add(59*time.Minute), "c", "a c"))
	require.True(t, ask(t, r, noon().Add(time.Hour), "c d", "a b c d"), "but it has the vote only for a time")
}

// The cluster goes on with the winners, which may split again.
func TestWinnersSplitAgain(t *testing.T) {
	r := fresh(t)
	require.True(t, ask(t, r, noon(), "a b", "a b c d"))
	require.True(t, ask(t, r, noon(), "b", "a b"))
	require.False(t, ask(t, r, noon(), "a", "a b"))
	require.False(t, ask(t, r, noon(), "c d", "a b c d"))
	require.True(t, ask(t, r, noon(), "x y", "x y z u"), "nobody of those who held the vote is left")
}

// The vote has moved on to nodes of which the side that slept has never heard.
func TestALoserThatSleptWhileTheVoteMovedOnStaysTheLoser(t *testing.T) {
	r := fresh(t)
	require.True(t, ask(t, r, noon(), "a b", "a b c d"))
	require.True(t, ask(t, r, noon().Add(time.Minute), "x y", "x y z u"))
	require.False(t, ask(t, r, noon().Add(59*time.Minute), "c d", "a b c d"))
}

// A split that healed before any node was downed leaves no node without a vote.
func TestAfterASplitThatHealedHoldersAndLosersMayStandTogether(t *testing.T) {
	r := fresh(t)
	require.True(t, ask(t, r, noon(), "a b", "a b c d"))
	require.True(t, ask(t, r, noon().Add(time.Minute), "a c", "a b c d"))
	require.False(t, ask(t, r, noon().Add(time.Minute), "b d", "a b c d"))
	require.True(t, ask(t, r, noon().Add(2*time.Minute), "c", "a c"))
}

// A cluster splits into halves, changes its nodes and splits again, at random, for less time
// than a vote is held. A half without the vote sleeps, asks whenever it wakes up, and never
// gets the vote.
func TestNobodyWhoSleptEverGetsTheVote(t *testing.T) {
	granted, refused := 0, 0
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := fresh(t)
		next := 0
		fill := func(nodes []string) []string { // Adds new nodes, up to four or six.
			for n := 4 + 2*rnd.IntN(2); len(nodes) < n; next++ {
				nodes = append(nodes, fmt.Sprint("n", next))
			}
			return nodes
		}
		cluster := fill(nil)
		var asleep []request
		for step := range 20 {
			at := noon().Add(time.Duration(step) * time.Minute)
			rnd.Shuffle(len(cluster), func(i, j int) { cluster[i], cluster[j] = cluster[j], cluster[i] })
			half := len(cluster) / 2
			switch rnd.IntN(3) {
			case 0: // Some nodes leave in order, and others join.
				cluster = fill(slices.Clone(cluster[rnd.IntN(half):]))
			case 1:
				voters := slices.Clone(cluster)
				sides := []request{{"bank", voters[:half], voters}, {"bank", voters[half:], voters}}
				won := -1
				for i, q := range sides {
					a, err := r.ask(q, at)
					require.NoError(t, err)
					if a.Granted {
						require.Equal(t, -1, won, "seed %d: both halves have the vote", seed)
						won, granted = i, granted+1
					}
				}
				if won < 0 { // Both halves give up, and a new cluster begins.
					cluster, refused = fill(nil), refused+1
					continue
				}
				asleep = append(asleep, sides[1-won])
				cluster = fill(slices.Clone(sides[won].Side))
			case 2:
				for _, q := range asleep {
					a, err := r.ask(q, at)
					require.NoError(t, err)
					require.False(t, a.Granted, "seed %d: %v had lost", seed, q.Side)
				}
			}
		}
	}
	t.Logf("%d splits were decided, in %d nobody got the vote", granted, refused)
	require.Greater(t, granted, 10*refused)
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

// When many nodes ask at once, one side wins.
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

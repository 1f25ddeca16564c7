// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
	"github.com/quorate/quorate/plugins/sdk/sdktest"
)

// The strategy against witnesses that the tests direct. First the suites of package
// downingtest and the vote between halves; then which sides ask, and what happens without
// an answer; last settings.

// serve starts a witness that answers by a function, and returns its URL.
func serve(tb testing.TB, vote func(request) answer) string {
	tb.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked request
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			tb.Error(err)
		}
		if err := json.NewEncoder(w).Encode(vote(asked)); err != nil {
			tb.Error(err)
		}
	}))
	tb.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		s.Close()
	})
	return s.URL
}

func deny(request) answer { return answer{Reason: "no"} }

func grant(request) answer { return answer{Granted: true, Reason: "yes"} }

func plain(tb testing.TB, vote func(request) answer) downing.Provider {
	tb.Helper()
	p, err := newWitness(settings{URL: serve(tb, vote), Cluster: "bank"})
	require.NoError(tb, err)
	return p
}

func TestTheContractIsKept(t *testing.T) {
	for name, vote := range map[string]func(request) answer{"denied": deny, "granted": grant} {
		t.Run(name, func(t *testing.T) {
			downingtest.TestProvider(t, func(tb testing.TB) downing.Provider { return plain(tb, vote) })
		})
	}
}

func TestTheContractIsKeptOverTheWire(t *testing.T) {
	downingtest.TestProvider(t, func(tb testing.TB) downing.Provider {
		tb.Helper()
		return sdktest.Downing(tb, sdk.Downing(newWitness), map[string]any{"url": serve(tb, deny), "cluster": "bank"})
	})
}

// Half of the votes do not keep a side on which everybody is about to leave.
func TestASideOfExitingMembersDoesNotAsk(t *testing.T) {
	members := downingtest.Members(2)
	members[0].Status = gossip.Exiting
	v := downingtest.SplitView(members, func(id gossip.NodeID) bool { return id == members[0].Node }, gossip.Base{downingtest.IDs(members)})
	p := plain(t, func(request) answer {
		t.Error("the witness was asked")
		return answer{Granted: true}
	})
	d, err := p.Decide(t.Context(), v)
	require.NoError(t, err)
	require.NoError(t, downing.Check(v, p.Class(), d))
	require.NotEqual(t, downing.KeepSide, d.Verdict)
}

// Of the sides of a split that ask one witness, at most one survives.
func TestAtMostOneSideSurvives(t *testing.T) {
	downingtest.TestSplits(t, func(tb testing.TB) downing.Provider {
		tb.Helper()
		var holders []string
		return plain(tb, func(r request) answer {
			if holders == nil {
				holders = r.Side
			}
			return answer{Granted: slices.Equal(holders, r.Side)}
		})
	})
}

// half returns the view of a node in the upper or the lower half of four members.
func half(upper bool) downing.View {
	members := downingtest.Members(4)
	middle := members[2].Node
	return downingtest.SplitView(members, func(id gossip.NodeID) bool { return (id.Compare(middle) >= 0) == upper },
		gossip.Base{downingtest.IDs(members)})
}

func TestTheVoteDecidesBetweenHalves(t *testing.T) {
	for _, granted := range []bool{true, false} {
		var asked request
		p := plain(t, func(r request) answer {
			asked = r
			return answer{Granted: granted, Reason: "as I please"}
		})
		v := half(true)
		d, err := p.Decide(t.Context(), v)
		require.NoError(t, err)
		require.NoError(t, downing.Check(v, p.Class(), d))
		require.Equal(t, granted, d.Verdict == downing.KeepSide)
		require.Equal(t, granted, downingtest.Survives(v, d))
		require.Equal(t, "bank", asked.Cluster)
		require.Equal(t, []string{v.Members[2].Node.String(), v.Members[3].Node.String()}, asked.Side)
		require.Len(t, asked.Voters, 4)
	}
}

// A side that is no half does not ask the witness.
func TestTheWitnessIsAskedOnlyByHalves(t *testing.T) {
	asked := 0
	p := plain(t, func(request) answer {
		asked++
		return answer{Granted: true}
	})
	members := downingtest.Members(5)
	for n := range 5 {
		v := downingtest.SplitView(members, func(id gossip.NodeID) bool { return id.Compare(members[n].Node) <= 0 },
			gossip.Base{downingtest.IDs(members), downingtest.IDs(members[:3])})
		d, err := p.Decide(t.Context(), v)
		require.NoError(t, err)
		require.Equal(t, n >= 2, downingtest.Survives(v, d), n)
	}
	require.Zero(t, asked)
}

// The vote of a member that exits and has seen the view counts for the witness as it does for a
// majority. Otherwise the side that has it would leave to the majority what the other side, to
// which the exit is known already, asks the witness for: and both would stay.
func TestTheVoteOfAnExitingMemberCounts(t *testing.T) {
	members := downingtest.Members(3)
	members[1].Status = gossip.Exiting
	var asked []request
	p := plain(t, func(r request) answer {
		asked = append(asked, r)
		return answer{}
	})
	ids := downingtest.IDs(members)
	first := downingtest.SplitView(members, func(id gossip.NodeID) bool { return id != ids[2] }, gossip.Base{{ids[0], ids[2]}, ids})
	second := downingtest.SplitView(members, func(id gossip.NodeID) bool { return id == ids[2] }, gossip.Base{{ids[0], ids[2]}})
	for _, v := range []downing.View{first, second} {
		d, err := p.Decide(t.Context(), v)
		require.NoError(t, err)
		require.Equal(t, downing.DownSide, d.Verdict, "the witness has refused")
	}
	require.Len(t, asked, 2, "each side has half of the voters that stay")
}

func TestWithoutAWitnessNobodyIsDowned(t *testing.T) {
	p := plain(t, deny)
	p.(*witness).URL = "http://127.0.0.1:1/"
	_, err := p.Decide(t.Context(), half(true))
	require.ErrorContains(t, err, "no vote from the witness")

	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	p.(*witness).URL = refusing.URL
	_, err = p.Decide(t.Context(), half(true))
	require.ErrorContains(t, err, "404")
}

func TestAWitnessThatHangsIsGivenUp(t *testing.T) {
	var gone atomic.Bool
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		<-release
		gone.Store(true)
	}))
	defer hanging.Close()
	defer close(release)
	p := &witness{settings{URL: hanging.URL, Cluster: "bank"}}
	_, err := p.Decide(patience.Expiring(t, 50*time.Millisecond), half(false))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.False(t, gone.Load())
}

func TestSettingsAreChecked(t *testing.T) {
	for key, s := range map[string]map[string]any{
		"url":     {"url": "witness:80", "cluster": "bank"},
		"cluster": {"url": "http://witness"},
		"urls":    {"urls": "http://witness"},
	} {
		_, err := sdktest.Configure(t, sdk.Downing(newWitness), s)
		var fault plugins.SettingError
		require.ErrorAs(t, err, &fault)
		require.Equal(t, key, fault.Key)
	}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
)

func TestConfigReportsEveryFault(t *testing.T) {
	require.NoError(t, downing.Default().Validate())
	c := downing.Config{StableAfter: -1, DownOwnSideAfter: 2 * time.Hour}
	err := c.Validate()
	require.ErrorContains(t, err, "strategy")
	require.ErrorContains(t, err, "stable-after")
	require.ErrorContains(t, err, "down-own-side-after")
	_, err = downing.New(c)
	require.Error(t, err)
}

func TestNewRefusesUnknownNames(t *testing.T) {
	c := downing.Default()
	c.Strategy = "ask-the-audience"
	_, err := downing.New(c)
	require.ErrorIs(t, err, downing.ErrUnknownStrategy)
	require.ErrorContains(t, err, "ask-the-audience")
}

// The catalogue makes a strategy from the section, with its parameters. The two
// built-in strategies have no parameters, which is part of the identity that members
// of earlier releases compare.
func TestAStrategyIsMadeOfItsSection(t *testing.T) {
	c := downing.Default()
	for _, name := range []string{downing.KeepMajorityName, downing.DownAllName} {
		c.Strategy = name
		_, parameters, err := downing.BuiltIns().New(c)
		require.NoError(t, err)
		require.Empty(t, parameters, name)
	}
	c.Strategy, c.DownOwnSideAfter = "patient", time.Minute
	l := downing.Catalogue{{
		Name: "patient", New: func(c downing.Config) downing.Immediate { return patient(c.DownOwnSideAfter) },
		Parameters: func(c downing.Config) string { return "after=" + c.DownOwnSideAfter.String() },
	}}
	strategy, parameters, err := l.New(c)
	require.NoError(t, err)
	require.Equal(t, "after=1m0s", parameters)
	require.Equal(t, patient(time.Minute), strategy)
	c.DownOwnSideAfter = 0
	_, _, err = l.New(c)
	require.ErrorContains(t, err, "down-own-side-after")
}

// patient is a strategy with a parameter.
type patient time.Duration

// Class is that of a pure and majority-only strategy.
func (patient) Class() downing.Class { return downing.Class{Pure: true, MajorityOnly: true} }

// Decide downs no member.
func (patient) Decide(context.Context, downing.View) (downing.Decision, error) {
	return downing.Decision{}, nil
}

// DecideNow downs no member.
func (patient) DecideNow(downing.View) (downing.Decision, error) { return downing.Decision{}, nil }

// The tag of the setting lists the names in the catalogue, so that the reference of
// the settings knows them.
func TestTheTagOfTheStrategyNamesTheTable(t *testing.T) {
	f, ok := reflect.TypeFor[downing.Config]().FieldByName("Strategy")
	require.True(t, ok)
	named := append(downing.BuiltIns().Names(), downing.LeaseMajorityName) // Its provider needs a store.
	require.ElementsMatch(t, named, strings.Split(f.Tag.Get("known"), "|"))
}

func TestStableAfterIsAtLeastTheFence(t *testing.T) {
	c := downing.Default()
	require.NoError(t, c.ValidateFence(3*time.Second))
	c.StableAfter = downing.AutoDuration(2 * time.Second)
	require.ErrorContains(t, c.ValidateFence(3*time.Second), "stable-after: 2s is shorter than the fence, 3s")
	require.NoError(t, c.ValidateFence(2*time.Second))
	require.Equal(t, 2*time.Second, c.Stable(5, 3*time.Second, 5*time.Second, time.Second))
}

func TestStableAfter(t *testing.T) {
	const s = time.Second
	tests := []struct {
		n                int
		min, max, fence  time.Duration
		spread, expected time.Duration
	}{
		{1, 3 * s, 5 * s, 3 * s, 0, 3 * s},
		{5, 3 * s, 5 * s, 3 * s, 200 * time.Millisecond, 3 * s},
		{5, 750 * time.Millisecond, 1250 * time.Millisecond, s, 200 * time.Millisecond, 1200 * time.Millisecond},
		{50, 3 * s, 5 * s, s, 400 * time.Millisecond, 2900 * time.Millisecond},
		{200, 3 * s, 5 * s, 3 * s, 500 * time.Millisecond, 3 * s},
		{1000, 3 * s, 5 * s, 3 * s, 700 * time.Millisecond, 3200 * time.Millisecond},
	}
	for _, test := range tests {
		require.Equal(t, test.spread, downing.Spread(test.n), "%d nodes", test.n)
		require.GreaterOrEqual(t, downing.Rounds(test.n, 1), downing.Rounds(test.n, 4), "%d nodes", test.n)
		require.Equal(t, test.expected, downing.StableAfter(test.n, test.min, test.max, test.fence), "%d nodes", test.n)
		require.Equal(t, test.expected, downing.Default().Stable(test.n, test.min, test.max, test.fence))
	}
}

func TestAutoDurationText(t *testing.T) {
	for _, text := range []string{"auto", "5s", "1m30s"} {
		var d downing.AutoDuration
		require.NoError(t, d.UnmarshalText([]byte(text)))
		out, err := d.MarshalText()
		require.NoError(t, err)
		require.Equal(t, text, string(out))
	}
	for _, text := range []string{"", "0s", "-1s", "soon", "5", "Auto"} {
		d := downing.AutoDuration(time.Second)
		require.ErrorContains(t, d.UnmarshalText([]byte(text)), "neither auto nor", "%q", text)
		require.Equal(t, downing.AutoDuration(time.Second), d)
	}
}

// covers F40 for downing: decisions from anywhere that break the contract.
func TestCheckFindsEveryFault(t *testing.T) {
	majority := downing.Class{MajorityOnly: true}
	split := whole(5)
	for _, o := range []int{0, 1} {
		for _, s := range []int{2, 3, 4} {
			split.Unreachable = append(split.Unreachable, downingtest.Complaint(downingtest.Node(o), downingtest.Node(s)))
		}
	}
	split.Seen = nodes(0, 1)
	tests := []struct {
		name  string
		class downing.Class
		d     downing.Decision
		want  string
	}{
		{"nothing", majority, downing.Decision{}, ""},
		{"gives up", majority, downing.Decision{Verdict: downing.DownSide, Down: nodes(0, 1)}, ""},
		{"everything", majority, downing.Decision{Verdict: downing.DownAll, Down: nodes(0, 1, 2, 3, 4)}, ""},
		{"keeps a minority", majority, downing.Decision{Verdict: downing.KeepSide, Down: nodes(2, 3, 4)}, "without a majority: 2 of 5"},
		{"may keep a minority", downing.Class{}, downing.Decision{Verdict: downing.KeepSide, Down: nodes(2, 3, 4)}, ""},
		{"keeps nobody", downing.Class{}, downing.Decision{Verdict: downing.KeepSide, Down: nodes(0, 1)}, "all of it is named"},
		{"stranger", majority, downing.Decision{Verdict: downing.DownSide, Down: nodes(0, 1, 9)}, "is no member"},
		{"twice", majority, downing.Decision{Verdict: downing.DownSide, Down: nodes(0, 0, 1)}, "twice"},
		{"out of order", majority, downing.Decision{Verdict: downing.DownSide, Down: nodes(1, 0)}, "out of order"},
		{"gives up in part", majority, downing.Decision{Verdict: downing.DownSide, Down: nodes(0)}, "gives up, but is not named"},
		{"takes others along", majority, downing.Decision{Verdict: downing.DownSide, Down: nodes(0, 1, 2)}, "not on the side"},
		{"not everything", majority, downing.Decision{Verdict: downing.DownAll, Down: nodes(0, 1)}, "is not named"},
		{"nothing, with names", majority, downing.Decision{Down: nodes(0)}, "verdict none"},
		{"no such verdict", majority, downing.Decision{Verdict: 9}, "does not exist"},
		{"long reason", majority, downing.Decision{Reason: string(make([]byte, 1025))}, "limit is 1024"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := downing.Check(split, test.class, test.d)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
			require.ErrorIs(t, err, downing.ErrContract)
		})
	}
	for v := downing.None; v <= downing.DownAll+1; v++ {
		require.NotEmpty(t, v.String())
	}
}

// A role or a quorum is a parameter, and so is the mode: nodes that differ in one of them
// have different strategies.
func TestParametersArePartOfTheIdentity(t *testing.T) {
	section := func(edit func(c *downing.Config)) downing.Config {
		c := downing.Default()
		edit(&c)
		return c
	}
	tests := []struct {
		name       string
		c          downing.Config
		parameters string
		class      downing.Class
	}{
		{"report", section(func(c *downing.Config) { c.Mode = downing.ModeReport }), "mode=report", downing.Class{Pure: true, MajorityOnly: true}},
		{"quorum", section(func(c *downing.Config) {
			c.Strategy, c.StaticQuorum.QuorumSize = downing.StaticQuorumName, 3
		}), `quorum-size=3 role=""`, downing.Class{Pure: true, MajorityOnly: true}},
		{"quorum of a role", section(func(c *downing.Config) {
			c.Strategy, c.StaticQuorum = downing.StaticQuorumName, downing.StaticQuorumConfig{QuorumSize: 3, Role: core}
		}), `quorum-size=3 role="core"`, downing.Class{Pure: true}},
		{"oldest", section(func(c *downing.Config) { c.Strategy = downing.KeepOldestName }), `down-if-alone=true role=""`, downing.Class{Pure: true}},
		{"oldest, report", section(func(c *downing.Config) {
			c.Strategy, c.KeepOldest, c.Mode = downing.KeepOldestName, downing.KeepOldestConfig{Role: core}, downing.ModeReport
		}), `mode=report down-if-alone=false role="core"`, downing.Class{Pure: true, MajorityOnly: true}},
		{"manual", section(func(c *downing.Config) { c.Strategy = downing.ManualName }), "", downing.Class{Pure: true, MajorityOnly: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			strategy, parameters, err := downing.BuiltIns().New(test.c)
			require.NoError(t, err)
			require.Equal(t, test.parameters, parameters)
			require.Equal(t, test.class, test.c.Promise(strategy.Class()))
			require.Equal(t, test.c.Mode == downing.ModeReport, downing.OnlyReports(parameters))
		})
	}
	require.False(t, downing.OnlyReports("mode=reporter"))
}

func TestParametersThatAreWrongAreNamed(t *testing.T) {
	c := downing.Default()
	c.Strategy, c.Mode = downing.StaticQuorumName, "shout"
	err := c.Validate()
	require.ErrorContains(t, err, `mode: "shout" is neither act nor report`)
	require.ErrorContains(t, err, "static-quorum.quorum-size: must be set for static-quorum")
	c.StaticQuorum.QuorumSize = 10_001
	require.ErrorContains(t, c.Validate(), "static-quorum.quorum-size: 10001 is not from 1 to 10000")
	c.StaticQuorum.QuorumSize = -1
	require.ErrorContains(t, c.Validate(), "static-quorum.quorum-size: -1 is not")
}

// The section of lease-majority counts if the strategy is chosen, and everything in it is part
// of the identity.
func TestTheSectionOfLeaseMajority(t *testing.T) {
	c := downing.Default()
	require.NoError(t, c.Validate())
	c.Strategy = downing.LeaseMajorityName
	require.ErrorContains(t, c.Validate(), "lease-majority.store: must be set")
	c.LeaseMajority.Store, c.LeaseMajority.Lease = "etcd", "bank"
	require.NoError(t, c.Validate())
	require.Equal(t, `store="etcd" lease-name="bank" role="" minority-delay=2s release-after=40s`, c.LeaseMajority.Parameters())
	c.LeaseMajority.ReleaseAfter = 1500 * time.Millisecond
	require.ErrorContains(t, c.Validate(), "lease-majority.release-after: 1.5s is not from 30s to 5m")
	_, err := downing.New(downing.Config{})
	require.Error(t, err)
	require.Equal(t, 31*time.Second, downing.HeardWithin(40*time.Second, 5*time.Second))
}

// What is wrong with parameters for the members that are there is said with a cure.
func TestParametersThatDoNotFitTheCluster(t *testing.T) {
	members := withCore(downingtest.Members(5))
	tests := []struct {
		name     string
		strategy downing.Fitted
		want     string
	}{
		{"fits", downing.StaticQuorum{Quorum: 3}, ""},
		{"larger than the cluster", downing.StaticQuorum{Quorum: 6}, "quorum-size is 6, and 5 members are up: the cluster ends"},
		{"too small", downing.StaticQuorum{Quorum: 2}, "decides nothing, a majority does; set it to at least 3"},
		{"too small for the role", downing.StaticQuorum{Quorum: 2, Role: core}, "4 core members are up: two sides could have the quorum, so none is kept when a member is lost; set it to at least 3"},
		{"a role that nobody has", downing.StaticQuorum{Quorum: 2, Role: "none"}, `downing.static-quorum.role is "none", and no member that is up has this role`},
		{"the oldest of no role", downing.KeepOldest{Role: "none"}, `downing.keep-oldest.role is "none"`},
		{"the oldest", downing.KeepOldest{Role: core}, ""},
		{"the lease of no role", downing.LeaseMajority{Role: "none"}, `downing.lease-majority.role is "none"`},
		{"the lease", downing.LeaseMajority{Role: core}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			misfit := test.strategy.Misfit(members)
			if test.want == "" {
				require.Empty(t, misfit)
				return
			}
			require.Contains(t, misfit, test.want)
		})
	}
}

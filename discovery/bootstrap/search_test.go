// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bootstrap_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
)

// The search of the node 10.0.0.9: first when it may form a cluster and when it may not, then how
// contact points are counted, spelled and looked up again, then several nodes with the same
// observations, and in the end the settings.

const port = 7946

func at(after time.Duration) time.Time { return time.Unix(0, 0).Add(after) }

func point(last int) discovery.Target {
	return discovery.Target{Host: fmt.Sprintf("10.0.0.%d", last), Port: port}
}

func points(last ...int) []discovery.Target {
	var all []discovery.Target
	for _, i := range last {
		all = append(all, point(i))
	}
	return all
}

func answers(last ...int) []bootstrap.Answer {
	var all []bootstrap.Answer
	for _, i := range last {
		all = append(all, bootstrap.Answer{From: point(i), Age: time.Second})
	}
	return all
}

// looking returns the search of the node 10.0.0.9 with changed settings.
func looking(change ...func(*bootstrap.Config)) *bootstrap.Search {
	c := bootstrap.Default()
	c.RequiredContactPoints = 3
	for _, f := range change {
		f(&c)
	}
	return bootstrap.NewSearch(c, point(9))
}

func TestAClusterMayBeFormedAfterTheMargin(t *testing.T) {
	s := looking()
	require.Equal(t, "no lookup has been answered yet", s.Missing(s.Observe(at(0), nil)))
	require.True(t, s.LookedUp(at(0), points(10, 11, 9)))
	o := s.Observe(at(3*time.Second), answers(10))
	require.Equal(t, "2 of 3 contact points, unchanged for 3 s of 5 s; 10.0.0.11:7946 does not answer", s.Explain(o))
	s.Dialled(point(11), discovery.Target{}, "connection refused")
	require.Equal(t, "2 of 3 contact points, unchanged for 3 s of 5 s; 10.0.0.11:7946 does not answer: connection refused", s.Explain(o))
	o = s.Observe(at(4*time.Second), answers(10, 11))
	require.Equal(t, "the margin has not passed", s.Missing(o))
	require.Equal(t, "3 of 3 contact points, unchanged for 4 s of 5 s", s.Explain(o))
	require.Equal(t, time.Second, o.Remains())
	require.False(t, s.LookedUp(at(4*time.Second), points(9, 10, 10, 11)), "twice is once, and the order is nothing")
	o = s.Observe(at(5*time.Second), answers(10, 11))
	require.Empty(t, s.Missing(o))
	require.Equal(t, bootstrap.Form, bootstrap.LowestAddress{}.DecideNow(o).Action)
}

func TestTheMarginBeginsAnew(t *testing.T) {
	for name, event := range map[string]func(*bootstrap.Search){
		"when another is found": func(s *bootstrap.Search) { s.LookedUp(at(4*time.Second), points(9, 10, 11, 12)) },
		"when a lookup fails": func(s *bootstrap.Search) {
			s.LookupFailed("timeout")
			require.Equal(t, "the lookup failed: timeout", s.Missing(s.Observe(at(4*time.Second), answers(10, 11, 13))))
			s.LookedUp(at(4*time.Second), points(9, 10, 11, 13))
		},
		"when nobody is found": func(s *bootstrap.Search) {
			s.LookedUp(at(3*time.Second), nil)
			require.Equal(t, "no contact point was found", s.Missing(s.Observe(at(20*time.Second), answers(10, 11, 13))))
			require.Len(t, s.Points(), 4, "whom the last one found is asked on")
			s.LookedUp(at(4*time.Second), points(9, 10, 11, 13))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := looking()
			s.LookedUp(at(0), points(9, 10, 11, 13))
			event(s)
			all := answers(10, 11, 12, 13)
			require.Equal(t, "the margin has not passed", s.Missing(s.Observe(at(8*time.Second), all)))
			require.Empty(t, s.Missing(s.Observe(at(9*time.Second), all)))
		})
	}
}

// Who was not named for the margin is a contact point no more, and the margin begins anew.
func TestAContactPointIsForgotten(t *testing.T) {
	s := looking()
	s.LookedUp(at(0), points(9, 10, 11, 13))
	require.False(t, s.LookedUp(at(4*time.Second), points(9, 10, 11)), "13 was named 4 s ago")
	require.Equal(t, "10.0.0.13:7946 does not answer", s.Missing(s.Observe(at(4*time.Second), answers(10, 11))))
	require.True(t, s.LookedUp(at(5*time.Second), points(9, 10, 11)))
	require.Equal(t, "the margin has not passed", s.Missing(s.Observe(at(9*time.Second), answers(10, 11))))
	require.Empty(t, s.Missing(s.Observe(at(10*time.Second), answers(10, 11))))
}

// Some sources name another part of all nodes with each answer: together they are the contact points.
func TestAnswersThatNameParts(t *testing.T) {
	s := looking(func(c *bootstrap.Config) { c.RequiredContactPoints = 5 })
	r := rand.New(rand.NewPCG(1, 2))
	all, said := points(9, 10, 11, 12, 13), answers(10, 11, 12, 13)
	formed := time.Duration(0)
	for now := time.Duration(0); formed == 0 && now < time.Minute; now += time.Second {
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		s.LookedUp(at(now), all[:3])
		if s.Missing(s.Observe(at(now), said)) == "" {
			formed = now
		}
	}
	require.NotZero(t, formed)
	require.Less(t, formed, 30*time.Second)

	for i := range 20 {
		s.LookedUp(at(time.Minute+time.Duration(i)*time.Second), points(9, 10+i))
	}
	require.Contains(t, s.Explain(s.Observe(at(80*time.Second), said)), "; the answers change, 20 times in the last minute; ")
	s.LookedUp(at(3*time.Minute), points(9, 29))
	require.NotContains(t, s.Explain(s.Observe(at(3*time.Minute), said)), "answers change")
}

func TestOtherPortsOfAHost(t *testing.T) {
	found := append(points(9, 10), discovery.Target{Host: "10.0.0.10", Port: 80}, discovery.Target{Host: "10.0.0.11", Port: 80})
	s := looking()
	s.LookedUp(at(0), found)
	require.Len(t, s.Points(), 4)
	s = looking(func(c *bootstrap.Config) { c.FilterOnDefaultPort = true })
	s.LookedUp(at(0), found)
	require.Equal(t, append(points(9, 10), discovery.Target{Host: "10.0.0.11", Port: 80}), s.Points(), "who has no other port is kept")
}

func TestWhoMayNotForm(t *testing.T) {
	late := at(time.Minute)
	missing := func(s *bootstrap.Search, found []discovery.Target, said []bootstrap.Answer) string {
		s.LookedUp(at(0), found)
		return s.Missing(s.Observe(late, said))
	}
	off := func(c *bootstrap.Config) { c.FormNewCluster = false }
	few := func(c *bootstrap.Config) { c.ContactAll = false }
	require.Empty(t, missing(looking(), points(9, 10, 11), answers(10, 11)))
	require.Equal(t, "this node, 10.0.0.9:7946, is not among the contact points", missing(looking(), points(10, 11, 12), answers(10, 11, 12)))
	require.Equal(t, "2 of the 3 contact points that are required were found", missing(looking(), points(9, 10), answers(10)))
	require.Equal(t, "this node forms no cluster: form-new-cluster is off", missing(looking(off), points(9, 10, 11), answers(10, 11)))
	require.Equal(t, "10.0.0.12:7946 does not answer", missing(looking(), points(9, 10, 11, 12), answers(10, 11)))
	require.Empty(t, missing(looking(few), points(9, 10, 11, 12), answers(10, 11)), "as many as are required are enough")
	require.Equal(t, "10.0.0.12:7946 does not answer; 10.0.0.13:7946 does not answer; 10.0.0.14:7946 does not answer; 2 more do not answer",
		missing(looking(), points(9, 10, 11, 12, 13, 14, 15, 16), answers(10, 11)))
	member := []bootstrap.Answer{{From: point(10), Member: true}, {From: point(11)}}
	require.Equal(t, "10.0.0.10:7946 is in a cluster, which is joined", missing(looking(), points(9, 10, 11), member))
	twoPorts := append(points(10, 11), discovery.Target{Host: "10.0.0.9", Port: 7947})
	require.Equal(t, "this node, 10.0.0.9:7946, is not among the contact points", missing(looking(), twoPorts, answers(10, 11)),
		"another port of its host is another node")
}

func TestTenThousandContactPointsFormNothing(t *testing.T) {
	var found []discovery.Target
	for i := range 10_000 {
		found = append(found, discovery.Target{Host: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String(), Port: port})
	}
	s := looking()
	s.LookedUp(at(0), found)
	require.Len(t, s.Points(), bootstrap.MaxPoints)
	require.Equal(t, "more than 1000 contact points were found", s.Missing(s.Observe(at(time.Minute), nil)))
	require.Less(t, len(s.Explain(s.Observe(at(time.Minute), nil))), 500)
}

func TestAHostWithSeveralAddressesCountsOnce(t *testing.T) {
	s := looking()
	s.LookedUp(at(0), points(9, 19, 10, 20))
	s.Dialled(point(20), point(10), "")
	s.Dialled(point(19), point(9), "")
	require.Equal(t, points(9, 10), s.Points())
	require.Equal(t, "2 of the 3 contact points that are required were found", s.Missing(s.Observe(at(time.Minute), answers(10))))
	s.Dialled(point(20), discovery.Target{}, "connection refused")
	require.Equal(t, points(9, 10, 20), s.Points(), "somebody else may live there by now")
}

func TestHowAddressesAreSpelled(t *testing.T) {
	c := bootstrap.Default()
	c.DefaultPort = 4000
	s := bootstrap.NewSearch(c, discovery.Target{Host: "2001:DB8::9", Port: 4000})
	s.LookedUp(at(0), []discovery.Target{
		{Host: "2001:db8::9", Port: 4000},
		{Host: "a.example", Port: 4000, IP: netip.MustParseAddr("10.0.0.1")},
		{Host: "a.example", Port: 4000, IP: netip.MustParseAddr("10.0.0.2")},
		{Host: "b.example"},
		{Host: "10.0.0.10", Port: 4000},
	})
	require.Equal(t, []discovery.Target{
		{Host: "10.0.0.1", Port: 4000},
		{Host: "10.0.0.2", Port: 4000},
		{Host: "10.0.0.10", Port: 4000},
		{Host: "2001:DB8::9", Port: 4000},
		{Host: "b.example", Port: 4000},
	}, s.Points(), "one address each where it is known, the node's own as it spells it, the port that was not told")
	s.Dialled(discovery.Target{Host: "10.0.0.1", Port: 4000}, discovery.Target{Host: "a1.example", Port: 4000}, "")
	require.Contains(t, s.Points(), discovery.Target{Host: "a1.example", Port: 4000}, "the node there calls itself by its name")
}

func TestLookupsBackOff(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := looking()
	pause := func(least time.Duration) {
		t.Helper()
		for range 20 {
			require.GreaterOrEqual(t, s.Pause(r), least)
			require.LessOrEqual(t, s.Pause(r), least+least/5)
		}
	}
	pause(time.Second)
	s.LookupFailed("down")
	pause(2 * time.Second)
	s.LookedUp(at(0), nil)
	pause(4 * time.Second)
	for range 100 {
		s.LookupFailed("down")
	}
	pause(15 * time.Second)
	s.LookedUp(at(0), points(9))
	pause(time.Second)
}

// At most one of several nodes with the same observations forms a cluster, whatever these are.
func TestOneOfAllForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		found := points(rapid.SliceOfNDistinct(rapid.IntRange(1, 30), 1, 8, func(i int) int { return i }).Draw(t, "found")...)
		c := bootstrap.Default()
		c.RequiredContactPoints = rapid.IntRange(1, 4).Draw(t, "required")
		var forms []discovery.Target
		for _, self := range found {
			s := bootstrap.NewSearch(c, self)
			s.LookedUp(at(0), found)
			var said []bootstrap.Answer
			for _, p := range found {
				said = append(said, bootstrap.Answer{From: p})
			}
			o := s.Observe(at(time.Minute), said)
			if s.Missing(o) == "" && (bootstrap.LowestAddress{}).DecideNow(o).Action == bootstrap.Form {
				forms = append(forms, self)
			}
		}
		if len(found) < c.RequiredContactPoints {
			require.Empty(t, forms)
			return
		}
		require.Len(t, forms, 1)
		for _, p := range found {
			require.LessOrEqual(t, bootstrap.Compare(forms[0], p), 0)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	require.NoError(t, bootstrap.Default().Validate())
	err := bootstrap.Config{StableMargin: -1, DefaultPort: 70_000, Service: string(make([]byte, 257))}.Validate()
	for _, key := range []string{
		"interval", "exponential-backoff-max", "resolve-timeout", "stable-margin", "required-contact-point-nr", "default-port", "service",
	} {
		require.ErrorContains(t, err, key+": ")
	}
	c := bootstrap.Default()
	c.IntervalMax = c.Interval / 2
	require.ErrorContains(t, c.Validate(), "exponential-backoff-max: 500ms is below interval 1s")
}

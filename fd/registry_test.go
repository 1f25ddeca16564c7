// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/fd"
)

func newRegistry(t require.TestingT, config fd.Config) *fd.Registry[string] {
	factory, err := fd.NewFactory(config)
	require.NoError(t, err)
	r, err := fd.NewRegistry(config, factory, strings.Compare)
	require.NoError(t, err)
	return r
}

func TestRegistryRefusesAnInvalidConfiguration(t *testing.T) {
	_, err := fd.NewRegistry(fd.Config{}, nil, cmp.Compare[int])
	require.ErrorContains(t, err, "max-silence")
}

// A node that never answers becomes unavailable, counted from the moment at
// which its first answer was due.
func TestRegistrySuspectsANodeThatNeverAnswers(t *testing.T) {
	config := fd.Default()
	r := newRegistry(t, config)
	r.Expect("a", start)
	require.True(t, r.Expected("a"))
	require.False(t, r.Monitoring("a"))
	change, due := r.Due(nil)
	require.True(t, due)
	silence := change.Sub(start) - config.ExpectedResponseAfter
	require.GreaterOrEqual(t, silence, config.AcceptableHeartbeatPause)
	require.LessOrEqual(t, silence, config.MaxSilence)
	require.True(t, r.Available("a", change.Add(-1)))
	require.False(t, r.Available("a", change))
	require.Equal(t, []string{"a"}, r.Unavailable(change))

	require.True(t, r.Heartbeat("a", change.Add(time.Hour)), "an answer turns the verdict")
	require.True(t, r.Monitoring("a"))
	require.True(t, r.Available("a", change.Add(time.Hour)))
}

// The presumed first answer leaves no trace: a registry whose node was late with its
// first answer gives the verdicts of a registry whose node was not.
func TestRegistryLearnsNothingFromThePresumedAnswer(t *testing.T) {
	prompt, late := newRegistry(t, fd.Default()), newRegistry(t, fd.Default())
	first := start.Add(1010 * time.Millisecond) // The answer was due 10 ms ago.
	prompt.Expect("a", first)
	late.Expect("a", start)
	for i := range 10 {
		at := first.Add(time.Duration(i) * time.Second)
		require.False(t, prompt.Heartbeat("a", at))
		require.False(t, late.Heartbeat("a", at))
		want, _ := prompt.Limit("a")
		got, _ := late.Limit("a")
		require.Equal(t, want, got)
	}
}

func TestRegistryIgnoresAnswersOfNodesThatItDoesNotExpect(t *testing.T) {
	r := newRegistry(t, fd.Default())
	require.False(t, r.Heartbeat("a", start))
	require.Zero(t, r.Len())
	r.Expect("a", start)
	r.Heartbeat("a", start)
	r.Remove("a")
	r.Remove("a")
	require.False(t, r.Heartbeat("a", start.Add(time.Hour)), "a late answer brings nothing back")
	require.False(t, r.Expected("a"))
	require.True(t, r.Available("a", start.Add(time.Hour)), "nothing speaks against it")
	_, due := r.Due(nil)
	require.False(t, due)
	_, due = r.Limit("a")
	require.False(t, due)
}

func TestRegistryKeepsWhatItKnowsWhenANodeIsExpectedAgain(t *testing.T) {
	r := newRegistry(t, fd.Default())
	r.Expect("a", start)
	r.Heartbeat("a", start)
	r.Expect("a", start.Add(time.Hour))
	require.False(t, r.Available("a", start.Add(time.Hour)))
	r.Reset()
	r.Expect("a", start.Add(time.Hour))
	require.True(t, r.Available("a", start.Add(time.Hour)))
	require.False(t, r.Monitoring("a"))
}

func TestRegistryTellsTheStatusOfEachNode(t *testing.T) {
	r := newRegistry(t, fd.Default())
	r.Expect("b", start)
	r.Expect("a", start)
	r.Heartbeat("a", start.Add(time.Second))
	status := r.Status(start.Add(6 * time.Second))
	require.Len(t, status, 2)
	require.Equal(t, "a", status[0].Node)
	require.True(t, status[0].Answered)
	require.False(t, status[0].Available)
	require.Equal(t, 5*time.Second, status[0].Silence)
	require.Greater(t, status[0].Phi, 1.0)
	require.Equal(t, "b", status[1].Node)
	require.False(t, status[1].Answered)
}

// registryModel is the registry as its documentation describes it, regardless of
// speed: one detector a node, in a map.
type registryModel struct {
	config fd.Config
	nodes  map[string]*modelNode
}

type modelNode struct {
	answered bool
	detector *fd.Bounded
}

func (m *registryModel) fresh() *fd.Bounded {
	factory, _ := fd.NewFactory(m.config)
	return fd.NewBounded(factory(), m.config.Bounds())
}

// Whatever happens in any order, the registry agrees with the model, its results are
// sorted, and the next change is the first at which a verdict changes.
func TestRegistryAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := fd.Default()
		r := newRegistry(t, config)
		model := &registryModel{config: config, nodes: map[string]*modelNode{}}
		now := start
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		t.Repeat(map[string]func(*rapid.T){
			"pass": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "by")))
			},
			"expect": func(t *rapid.T) {
				n := name.Draw(t, "node")
				r.Expect(n, now)
				if model.nodes[n] == nil {
					model.nodes[n] = &modelNode{detector: model.fresh()}
					model.nodes[n].detector.Heartbeat(now.Add(config.ExpectedResponseAfter))
				}
			},
			"answer": func(t *rapid.T) {
				n := name.Draw(t, "node")
				recovered := r.Heartbeat(n, now)
				m := model.nodes[n]
				require.Equal(t, m != nil && !m.detector.Available(now), recovered)
				if m != nil {
					if !m.answered {
						m.answered, m.detector = true, model.fresh()
					}
					m.detector.Heartbeat(now)
				}
			},
			"remove": func(t *rapid.T) {
				n := name.Draw(t, "node")
				r.Remove(n)
				delete(model.nodes, n)
			},
			"": func(t *rapid.T) { model.check(t, r, now) },
		})
	})
}

func (m *registryModel) check(t *rapid.T, r *fd.Registry[string], now time.Time) {
	require.Equal(t, len(m.nodes), r.Len())
	require.True(t, slices.IsSorted(r.Nodes()))
	var unavailable []string
	for _, n := range r.Nodes() {
		require.NotNil(t, m.nodes[n])
		require.Equal(t, m.nodes[n].answered, r.Monitoring(n))
		require.Equal(t, m.nodes[n].detector.Available(now), r.Available(n, now))
		if !r.Available(n, now) {
			unavailable = append(unavailable, n)
		}
	}
	require.Equal(t, unavailable, r.Unavailable(now))
	m.checkDue(t, r, now)
}

// checkDue requires that Due is the first moment at which a node is unavailable that
// the caller does not hold unavailable already: from that moment on there is such a
// node, and before it there is none.
func (m *registryModel) checkDue(t *rapid.T, r *fd.Registry[string], now time.Time) {
	held := map[string]bool{}
	for _, n := range r.Nodes() {
		held[n] = rapid.Bool().Draw(t, "held")
	}
	unheld := func(at time.Time) []string {
		return slices.DeleteFunc(slices.Clone(r.Unavailable(at)), func(n string) bool { return held[n] })
	}
	limit, due := r.Due(func(n string) bool { return held[n] })
	require.Equal(t, slices.ContainsFunc(r.Nodes(), func(n string) bool { return !held[n] }), due)
	require.Equal(t, due && limit.Sub(now) <= 0, len(unheld(now)) > 0, "who has passed a limit is due")
	if due {
		require.Empty(t, unheld(limit.Add(-1)), "a verdict turned before it was due")
		require.NotEmpty(t, unheld(limit), "nobody was due")
	}
}

// A caller that sleeps through limits, that passes one limit while it handles another,
// or that does not act when it should, gets every limit in the end.
func TestRegistryForgetsNobodyWhoPassedALimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := fd.Default()
		r := newRegistry(t, config)
		now, silent := start, map[string]bool{}
		for _, n := range []string{"a", "b", "c", "d"} {
			r.Expect(n, now)
			if rapid.Bool().Draw(t, "silent") {
				silent[n] = true
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "later")))
		}
		accused := map[string]bool{}
		held := func(n string) bool { return accused[n] }
		for range 60 {
			for _, n := range r.Nodes() {
				if !silent[n] {
					r.Heartbeat(n, now)
				}
			}
			// The caller sleeps, or is woken up by its timer.
			due, ahead := r.Due(held)
			now = now.Add(time.Duration(rapid.Int64Range(1, int64(time.Second)).Draw(t, "sleep")))
			if ahead && due.Sub(now) <= 0 && rapid.IntRange(0, 2).Draw(t, "acts") > 0 {
				for _, n := range r.Unavailable(now) {
					accused[n] = true
				}
			}
		}
		now = now.Add(config.ExpectedResponseAfter + config.MaxSilence)
		for _, n := range r.Nodes() {
			if !silent[n] {
				r.Heartbeat(n, now)
			}
		}
		if due, ahead := r.Due(held); ahead && due.Sub(now) <= 0 {
			for _, n := range r.Unavailable(now) {
				accused[n] = true
			}
		}
		require.Equal(t, silent, accused)
	})
}

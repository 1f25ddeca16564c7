// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && linux

package host_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// Bad plugins of every policy: those that do not start, those that fail in a call, and those
// whose answers break the contract of their policy. Plugins of all policies meet the first
// two alike, so one table has them for all; what is wrong in an answer is particular to each.

// Whatever is no plugin for this host is refused for each policy, in time and by its name.
// covers B59, F57, F58.
func TestEveryPolicyRefusesWhatIsNoPlugin(t *testing.T) {
	for name, c := range map[string]struct {
		mode   string
		change func(*plugins.Config)
		is     error
	}{
		"is not there":            {"good", func(c *plugins.Config) { c.Path += "-not" }, plugins.ErrNotPlugin},
		"exits":                   {"exit", nil, plugins.ErrNotPlugin},
		"prints garbage":          {"garbage", nil, plugins.ErrNotPlugin},
		"speaks a future version": {"future", nil, plugins.ErrVersion},
		"hangs in the handshake":  {"silent", func(c *plugins.Config) { c.StartTimeout = time.Second }, plugins.ErrStartTimeout},
		"hangs when configured":   {"hangconfigure", func(c *plugins.Config) { c.StartTimeout = 2 * time.Second }, plugins.ErrStartTimeout},
		"forks and exits":         {"forkexit", nil, plugins.ErrNotPlugin},
		"has another checksum":    {"good", func(c *plugins.Config) { c.SHA256 = plugins.Checksums{strings.Repeat("ab", 32)} }, plugins.ErrChecksum},
		"decides something else":  {"good", func(c *plugins.Config) { c.Environment["POLICY"] = string(another(c.Policy)) }, plugins.ErrPolicy},
	} {
		for _, policy := range plugins.Policies() {
			t.Run(string(policy)+"/"+name, func(t *testing.T) {
				cfg := config(t, policy, c.mode)
				if c.change != nil {
					c.change(&cfg)
				}
				w := &watcher{}
				watch := patience.Start(t)
				_, err := host.Open(t.Context(), "subject", cfg, w.options(clean(t))...)
				require.ErrorIs(t, err, c.is)
				require.Less(t, watch.Elapsed(), cfg.StartTimeout+10*time.Second)
				var full *plugins.Error
				require.ErrorAs(t, err, &full)
				require.NotEmpty(t, full.Cure)
			})
		}
	}
}

// another returns a policy that is not p.
func another(p plugins.Policy) plugins.Policy {
	if p == plugins.Downing {
		return plugins.Allocation
	}
	return plugins.Downing
}

// A call that fails ends in time for each policy, with an error that says how. covers F56.
func TestEveryPolicyBoundsItsCalls(t *testing.T) {
	const callTimeout = 300 * time.Millisecond
	for _, c := range []struct {
		mode string
		env  []string
		is   error
	}{
		{"hangcall", nil, context.DeadlineExceeded},
		{"slow", []string{"DELAY=5s"}, context.DeadlineExceeded},
		{"diescall", nil, plugins.ErrUnavailable},
		{"fails", nil, plugins.ErrStrategy},
		{"unserved", nil, plugins.ErrPolicy},
		{"huge", nil, plugins.ErrLimit},
	} {
		for _, policy := range plugins.Policies() {
			t.Run(string(policy)+"/"+c.mode, func(t *testing.T) {
				cfg := config(t, policy, c.mode, c.env...)
				cfg.CallTimeout = callTimeout
				if c.mode == "huge" { // A busy machine takes its time over 64 MiB, in which health checks wait.
					cfg.CallTimeout, cfg.HealthTimeout = 5*time.Second, 10*time.Second
				}
				p, _ := open(t, cfg)
				watch := patience.Start(t)
				_, err := p.Try(t.Context())
				require.ErrorIs(t, err, c.is)
				require.Less(t, watch.Elapsed(), cfg.CallTimeout+10*time.Second)
				require.Less(t, len(err.Error()), 4096)
			})
		}
	}
}

// judge asks about two nodes, the first of which is believed alive.
func judge(ctx context.Context, p *host.Plugin, number uint64) (fd.Verdicts, error) {
	j, err := p.FailureDetector()
	if err != nil {
		return fd.Verdicts{}, err
	}
	b := fd.Batch{Number: number, Subjects: []fd.Subject{{ID: "a", Available: number%2 == 1}, {ID: "b", Available: true}}}
	if number > 1 {
		b.Elapsed = time.Millisecond
	}
	return j.Judge(ctx, b)
}

// unready is what a node sees that may not form a cluster: too few contact points, too early.
func unready() bootstrap.Observations {
	self := discovery.Target{Host: "10.0.0.1", Port: 7946}
	return bootstrap.Observations{
		Service: "bank", Self: self, Required: 3, StableMargin: time.Second,
		Points: []bootstrap.Observed{{Point: self}},
	}
}

// Answers that break the contract of failure detectors, join deciders and discovery are
// errors of their call alone: the process stays. covers F60, B60.
func TestAnswersOfTheOtherPoliciesAreChecked(t *testing.T) {
	ask := map[plugins.Policy]func(*host.Plugin) error{
		plugins.FailureDetector: func(p *host.Plugin) error {
			_, err := judge(t.Context(), p, 1)
			return err
		},
		plugins.JoinDecider: func(p *host.Plugin) error {
			d, err := p.JoinDecider()
			if err == nil {
				_, err = d.Decide(t.Context(), unready())
			}
			return err
		},
		plugins.Discovery: func(p *host.Plugin) error {
			d, err := p.Discovery()
			if err == nil {
				_, err = d.Lookup(t.Context(), discovery.Query{Service: "bank"})
			}
			return err
		},
	}
	for policy, modes := range map[plugins.Policy]string{
		plugins.FailureDetector: "unknown unasked double columns number",
		plugins.JoinDecider:     "form action unknown nobody",
		plugins.Discovery:       "10001 double columns port ip ttl host",
	} {
		for mode := range strings.FieldsSeq(modes) {
			t.Run(string(policy)+"/"+mode, func(t *testing.T) {
				p, _ := open(t, config(t, policy, mode))
				pid := p.Status().PID
				require.ErrorIs(t, ask[policy](p), plugins.ErrAnswer)
				s := p.Status()
				require.Equal(t, pid, s.PID)
				require.Equal(t, uint64(1), s.Failures)
			})
		}
	}
}

// As many contact points as the contract permits arrive.
func TestDiscoveryOfTenThousandTargets(t *testing.T) {
	p, _ := open(t, config(t, plugins.Discovery, "10000"))
	d, err := p.Discovery()
	require.NoError(t, err)
	found, err := d.Lookup(t.Context(), discovery.Query{Service: "bank"})
	require.NoError(t, err)
	require.Len(t, found.List, discovery.MaxTargets)
}

// A detector that turns every verdict in every batch is answered for a thousand batches on
// end: each answer has one verdict for each node that was asked about, and none is lost.
func TestAThousandFlappingVerdictsArrive(t *testing.T) {
	p, _ := open(t, config(t, plugins.FailureDetector, "flaps"))
	for number := uint64(1); number <= 1000; number++ {
		v, err := judge(t.Context(), p, number)
		require.NoError(t, err)
		require.Equal(t, number, v.Number)
		require.Len(t, v.Changes, 2)
		require.Equal(t, number%2 == 0, v.Changes[0].Available)
	}
	require.Zero(t, p.Status().Restarts)
}

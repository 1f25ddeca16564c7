// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"time"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/supervisor"
)

// Status returns a snapshot of the plugin.
func (p *Plugin) Status() plugins.Status {
	v := p.view.Load()
	at := time.Now()
	s := plugins.Status{
		Name: p.name, State: plugins.State(v.State.String()), Since: v.Since,
		Restarts: v.Restarts, FailedInARow: v.Loop, LastError: v.LastErr, LastErrorAt: v.LastErrAt, NextTry: v.NextTry, AwayTotal: v.AwayTotal, AwayLast: v.AwayLast, Gaps: v.Gaps,
		Calls: p.calls.Load(), Failures: p.failures.Load(), Late: p.routes.late.Load(),
		Resent: p.resent.Load(), OutputLeftOut: p.starter.leftOut.Load(),
	}
	if v.Away && v.State != supervisor.Stopped {
		s.Away = max(0, at.Sub(v.AwaySince))
		s.AwayTotal += s.Away
	}
	if last := p.lastCall.Load(); last != nil {
		s.LastCall = *last
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Policy, s.Manifest, s.SHA256, s.Swaps = p.policy, p.manifest, p.sum, p.swaps
	if g := p.serving; g != nil {
		s.PID, s.Started, s.Debug = g.process.PID(), g.process.Started(), g.spec.cfg.Debug
	}
	return s
}

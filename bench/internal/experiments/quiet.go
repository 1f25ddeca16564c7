// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
)

// What a process costs that does nothing but be a member, with everything of a node on. Nodes that share a process
// are in members.go: there the price of the process, and of waking it, is one for all.

// quietGroup is processes that do nothing.
func quietGroup() harness.Group {
	figures := []figure.Figure{{Name: "cpu", Value: "cpu", Unit: "ms/s", Better: figure.Lower, Target: 2}}
	if harness.SocketsCounted {
		figures = append(figures,
			figure.Figure{Name: "resident", Value: "resident", Unit: "MB", Better: figure.Lower, Target: 25},
			figure.Figure{Name: "resident-own", Value: "own", Unit: "MB", Better: figure.Lower},
			figure.Figure{Name: "sleeps", Value: "sleeps", Unit: "1/s", Better: figure.Lower},
			figure.Figure{Name: "wire-bytes", Value: "wire", Unit: "B/s", Better: figure.Lower, Target: 1200},
			figure.Figure{Name: "packets", Value: "packets", Unit: "1/s", Better: figure.Lower})
	}
	return harness.Group{
		Name: "quiet", About: "10 processes, each a node that does nothing", Optional: true,
		Experiments: []harness.Experiment{{Measure: measureQuiet, Spec: harness.Spec{Nodes: 10}, Figures: figures}},
	}
}

// requestUsage asks a node what its process has used.
const requestUsage = "usage"

// measureQuiet starts processes with a node each, and says what one of them costs after a while, in which what happens
// once in ten seconds has its part.
func measureQuiet(ctx context.Context, s harness.Spec, k *harness.Link) (out figure.Outcome, err error) {
	nodes := k.Peers()
	defer nodes.Stop()
	s = s.As(roleMember)
	for range s.Nodes {
		if err := nodes.Add(ctx, s); err != nil {
			return out, err
		}
		s.Seeds = []string{nodes.Address(0)}
	}
	if err := harness.Pause(ctx, quietTime); err != nil {
		return out, err
	}
	before, err := harness.AskAll[harness.Usage](ctx, nodes, requestUsage)
	if err != nil {
		return out, err
	}
	if err := harness.Pause(ctx, quietFor*s.Time); err != nil {
		return out, err
	}
	after, err := harness.AskAll[harness.Usage](ctx, nodes, requestUsage)
	if err != nil {
		return out, err
	}
	out.Values = map[string]float64{}
	for i, now := range after {
		seconds := (now.At - before[i].At).Seconds() * float64(s.Nodes)
		sent := now.Sockets.Since(before[i].Sockets)
		out.Values["cpu"] += harness.Milliseconds(now.CPU-before[i].CPU) / seconds
		out.Values["sleeps"] += float64(now.Sleeps-before[i].Sleeps) / seconds
		out.Values["wire"] += float64(sent.Bytes) / seconds
		out.Values["packets"] += float64(sent.Packets) / seconds
		out.Values["own"] += float64(now.Own) / 1e6 / float64(s.Nodes)
		out.Values["resident"] += float64(now.Resident) / 1e6 / float64(s.Nodes)
	}
	return out, nil
}

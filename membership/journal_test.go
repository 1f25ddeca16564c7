// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership"
)

// logged returns an option by which a node logs into lines of its own, and what
// returns those lines: each is the level if it is not info, and the message.
func logged() (membership.Option, func() []string) {
	text := new(lines)
	h := slog.NewTextHandler(text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.LevelKey && a.Value.Any() != slog.LevelInfo || a.Key == slog.MessageKey {
			return slog.String("", a.Value.String()) // A text without a key.
		}
		return slog.Attr{}
	}})
	return membership.WithLogger(slog.New(h)), func() []string {
		var all []string
		for line := range strings.Lines(text.String()) {
			all = append(all, strings.NewReplacer(`""=`, "", `"`, "", "\n", "").Replace(line))
		}
		return all
	}
}

// since returns the lines from the one on that ends like that.
func since(all []string, end string) []string {
	return all[slices.IndexFunc(all, func(line string) bool { return strings.HasSuffix(line, end) }):]
}

// Each node logs once, in a sentence, what becomes of the members and which member leads;
// the node that decided it does not log it twice; the last line says why the node ends.
func TestEachNodeSaysOnceWhatHappens(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		var nodes []*membership.Node
		var logs []func() []string
		for i := range 4 {
			log, read := logged()
			nodes, logs = append(nodes, p.start(config(i+1), log)), append(logs, read)
			p.awaitUp(nodes...)
		}
		require.NoError(t, nodes[2].Leave(t.Context()))
		<-time.After(10 * time.Second)
		p.network.Cut(address(2), address(1))
		<-time.After(2 * time.Second) // So that it is known which of the two is missed first.
		p.network.Cut(address(2), address(4))
		require.ErrorIs(t, p.ended(nodes[1]), membership.ErrDown)
		<-time.After(20 * time.Second)
		require.Equal(t, []string{
			"member 10.0.0.1:7946 is up",
			"10.0.0.1:7946 leads the cluster now",
			"member 10.0.0.2:7946 joins",
			"member 10.0.0.2:7946 is up",
			"member 10.0.0.3:7946 joins",
			"member 10.0.0.3:7946 is up",
			"member 10.0.0.4:7946 joins",
			"member 10.0.0.4:7946 is up",
			"member 10.0.0.3:7946 leaves",
			"member 10.0.0.3:7946 was removed after it had left",
			"member 10.0.0.2:7946 is unreachable",
			"the downing strategy decided: keep-side",
			"member 10.0.0.2:7946 is declared down",
			"member 10.0.0.2:7946 was removed after it had been declared down",
			"WARN connection refused",
		}, since(logs[0](), "10.0.0.1:7946 is up"))
		require.Equal(t, []string{
			"this node has joined a cluster of 1 member",
			"10.0.0.1:7946 leads the cluster now",
			"member 10.0.0.2:7946 is up",
			"member 10.0.0.3:7946 joins",
			"member 10.0.0.3:7946 is up",
			"member 10.0.0.4:7946 joins",
			"member 10.0.0.4:7946 is up",
			"member 10.0.0.3:7946 leaves",
			"member 10.0.0.3:7946 was removed after it had left",
			"member 10.0.0.1:7946 is unreachable",
			"10.0.0.2:7946 leads the cluster now",
			"member 10.0.0.4:7946 is unreachable",
			"the downing strategy decided: down-side",
			"member 10.0.0.2:7946 is declared down",
			"ERROR this node ends: was declared down: by itself: keep-majority: this side has no majority: 1 of 3 voters",
		}, logs[1]())
		require.Equal(t, []string{
			"this node has joined a cluster of 2 members",
			"10.0.0.1:7946 leads the cluster now",
			"member 10.0.0.3:7946 is up",
			"member 10.0.0.4:7946 joins",
			"member 10.0.0.4:7946 is up",
			"this node hosts nothing any more: every component has handed its work over",
			"member 10.0.0.3:7946 leaves",
			"this node has left the cluster and ends",
		}, logs[2]())
		require.Equal(t, []string{
			"this node has joined a cluster of 3 members",
			"10.0.0.1:7946 leads the cluster now",
			"member 10.0.0.4:7946 is up",
			"member 10.0.0.3:7946 leaves",
			"member 10.0.0.3:7946 was removed after it had left",
			"member 10.0.0.2:7946 is unreachable",
			"10.0.0.2:7946#2 does not answer this node",
			"member 10.0.0.2:7946 is declared down",
			"member 10.0.0.2:7946 was removed after it had been declared down",
			"WARN connection refused",
		}, logs[3]())
	})
}

// A node that others declared down says by whom and why. One that was closed, or waits for
// somebody, says so too.
func TestANodeSaysWhyItEndsOrWaits(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		others := p.cluster(3)
		log, read := logged()
		victim := p.start(config(4), log)
		p.awaitUp(append(others, victim)...)
		require.NoError(t, others[0].Down(t.Context(), at(4)))
		require.ErrorIs(t, p.ended(victim), membership.ErrDown)
		require.Equal(t, "ERROR this node ends: was declared down: by 10.0.0.1:7946#1: command: Down was called on that node",
			read()[len(read())-1])

		log, read = logged()
		cfg := config(5)
		cfg.Membership.SeedNodes = nil
		require.NoError(t, p.start(cfg, log).Close())
		require.Equal(t, []string{
			"this node waits until the program lets it join: membership.seed-nodes names nobody, and membership.discovery looks for nobody", "this node was closed",
		}, read())

		log, read = logged()
		cfg = config(6)
		cfg.Membership.SeedNodes = []string{at(7)}
		p.start(cfg, log)
		<-time.After(10 * time.Second)
		require.Contains(t, read()[0], "this node waits to join: 0 of 1 of the listed seed nodes are here and in no cluster; missing: 10.0.0.7:7946 (silent)")
	})
}

// patient is keep-majority, but for one node, which waits whatever it sees.
type patient struct{ at gossip.Address }

func (patient) Class() downing.Class { return downing.KeepMajority{}.Class() }

func (p patient) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	if v.Self.Address == p.at {
		return downing.Decision{Reason: "it waits"}, nil
	}
	return downing.KeepMajority{}.Decide(ctx, v)
}

// A node that comes back from behind a cut long after it was removed is refused by
// the transports of the others, and says why in its last line.
func TestANodeThatIsRefusedAsRemovedSaysWhy(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		opt := membership.WithDowning(membership.Downing{Provider: patient{address(4)}})
		others := p.cluster(3, opt)
		log, read := logged()
		victim := p.start(config(4), log, opt)
		p.awaitUp(append(others, victim)...)
		for i := range 3 {
			p.network.Cut(address(i+1), address(4))
		}
		<-time.After(time.Minute)
		require.NoError(t, victim.Err())
		for i := range 3 {
			p.network.Heal(address(i+1), address(4))
		}
		require.ErrorIs(t, p.ended(victim), membership.ErrDown)
		last := read()[len(read())-1]
		require.Regexp(t, `^ERROR this node ends: was declared down: .*by 10\.0\.0\.1:7946#1: keep-majority: this side has 3 of 4 voters`, last)
		require.Regexp(t, `it is removed, says 10\.0\.0\.[123]:7946#[123]`, last)
	})
}

// Nodes that did not decide it say by whom and why a member was declared down as well.
func TestOthersSayWhyAMemberIsDown(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		text := new(lines)
		nodes := p.cluster(3)
		watcher := p.start(config(4), membership.WithLogger(slog.New(slog.NewTextHandler(text, nil))))
		p.awaitUp(append(nodes, watcher)...)
		require.NoError(t, nodes[1].Down(t.Context(), at(3)))
		require.ErrorIs(t, p.ended(nodes[2]), membership.ErrDown)
		<-time.After(10 * time.Second)
		require.Contains(t, text.String(), `msg="member 10.0.0.3:7946 is declared down" node=10.0.0.4:7946#4 `+
			`member=10.0.0.3:7946#3 by=10.0.0.2:7946#2 reason="command: Down was called on that node"`)
	})
}

// That a neighbour was restarted is no warning to anybody in good health.
func TestARestartedNeighbourIsNoWarning(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		nodes := p.cluster(3)
		require.NoError(t, nodes[2].Close())
		nodes[2] = p.start(config(3))
		p.awaitUp(nodes...)
		require.NotContains(t, p.log.String(), "level=WARN")
	})
}

// said collects the messages of a log.
type said struct {
	slog.Handler

	mu   sync.Mutex
	text []string
}

func (s *said) Handle(_ context.Context, r slog.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, r.Message)
	return nil
}

// The log of a node has no line that somebody else has made up, whatever a decision is about: the name of a kind that a
// member has registered, or the path that an operator has asked for.
func TestTheLinesOfANodeAreItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		const madeUp = "x\n2026/11/28 13:40:00 WARN made up\x1b[31m\u202e"
		log := &said{Handler: slog.DiscardHandler}
		n := p.start(config(1), membership.WithLogger(slog.New(level{log})))
		p.awaitUp(n)
		for _, component := range []string{membership.ComponentName, "sharding", "management"} {
			for _, topic := range []string{"coordinator", "operation", "join", "downing", "cluster", "leave", "reachability"} {
				for _, verdict := range []string{"retry", "leaving", "confirmed", "down", "unreachable", madeUp} {
					n.Decisions().Record(component, machine.Decide{Topic: topic, Subject: madeUp, Verdict: verdict, Reason: madeUp})
				}
			}
			n.Decisions().Record(component, machine.Decide{Topic: madeUp, Subject: madeUp, Verdict: "x", Reason: "y"})
		}
		require.NoError(t, n.Close())
		found := 0
		for _, text := range log.text {
			require.True(t, gossip.IsName(text), "%q", text)
			if strings.Contains(text, `x\n2026/11/28 13:40:00 WARN made up\x1b[31m\u202e`) {
				found++
			}
		}
		require.Greater(t, found, 20)
	})
}

// level has every line handled.
type level struct{ *said }

func (level) Enabled(context.Context, slog.Level) bool { return true }

func (l level) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l level) WithGroup(string) slog.Handler { return l }

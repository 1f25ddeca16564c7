// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/discovery/bootstrap/bootstraptest"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/loopbacktest"
	"github.com/quorate/quorate/plugins/internal/policies"
	"github.com/quorate/quorate/plugins/internal/server"
)

// A host refuses an answer exactly if the public check of the policy does: whoever calls the
// check in a strategy of theirs hears of all that a host would refuse. Answers are drawn, half
// of them good; each way in which one can be bad is among them.

// draws is how many answers of each policy are drawn.
const draws = 2000

// served returns a strategy of type T behind a connection.
func served[T any](t *testing.T, strategy T) T {
	t.Helper()
	policy, ok := policies.Of[T]()
	require.True(t, ok)
	s := server.New(server.Strategy{
		Service: policy.Service, Name: "s", Configure: func([]byte) (any, error) { return strategy, nil },
	}, slog.New(slog.DiscardHandler))
	conn := loopbacktest.Conn(t, func(r grpc.ServiceRegistrar) { s.Register(r) })
	m, err := client.Configure(t.Context(), conn, "s", "", nil)
	require.NoError(t, err)
	return policy.Client(client.Target{Conn: conn, Name: "s", Class: m.Class, Timeout: patience.Limit}).(T)
}

// agree holds what a host says of each drawn answer against what the check says.
func agree(t *testing.T, round func(r *rand.Rand) (host, check error)) {
	t.Helper()
	refused := 0
	for seed := range uint64(draws) {
		host, check := round(rand.New(rand.NewPCG(seed, 0xa9)))
		require.Equal(t, check == nil, host == nil, "seed %d: the host says %v, the check %v", seed, host, check)
		if check != nil {
			refused++
		}
	}
	require.InDelta(t, draws/2, refused, draws*4/10, "answers of both sorts are drawn")
}

// reasonOf draws a reason: most are good.
func reasonOf(r *rand.Rand) string {
	odd := []string{"", "two\nlines", "\xff", strings.Repeat("é", 512), strings.Repeat("x", 1025), strings.Repeat("\x80", 2000)}
	if i := r.IntN(8 * len(odd)); i < len(odd) {
		return odd[i]
	}
	return "why"
}

// some draws elements of a list, in its order, or, rarely, in another one or with one there twice.
func some[E any](r *rand.Rand, list []E) []E {
	drawn := slices.DeleteFunc(slices.Clone(list), func(E) bool { return r.IntN(2) == 0 })
	if len(drawn) > 0 && r.IntN(16) == 0 {
		drawn = append(drawn, drawn[r.IntN(len(drawn))])
	}
	if r.IntN(16) == 0 {
		r.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	}
	return drawn
}

// rarely reports true once in n.
func rarely(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// decided is a downing provider that says what it was told to.
type decided struct {
	class  downing.Class
	answer *downing.Decision
}

func (d decided) Class() downing.Class { return d.class }

func (d decided) Decide(context.Context, downing.View) (downing.Decision, error) {
	return *d.answer, nil
}

func drawDowning(r *rand.Rand, v downing.View) downing.Decision {
	if rarely(r, 3) {
		if d, err := (downing.KeepMajority{}).DecideNow(v); err == nil {
			return d
		}
	}
	d := downing.Decision{Verdict: downing.Verdict(r.IntN(int(downing.DownAll) + 2)), Reason: reasonOf(r)}
	for _, m := range v.Members {
		if downing.CanBeDowned(m) || rarely(r, 32) {
			d.Down = append(d.Down, m.Node)
		}
	}
	switch d.Verdict {
	case downing.DownAll:
	case downing.KeepSide:
		d.Down = some(r, d.Down)
	default:
		d.Down = nil
	}
	if rarely(r, 16) {
		d.Down = append(d.Down, gossip.NodeID{Address: gossip.Address{Host: "z.example", Port: 1}, UID: 1})
	}
	return d
}

func TestHostAndCheckAgreeAboutDowning(t *testing.T) {
	for _, class := range []downing.Class{{}, {MajorityOnly: true}} {
		var d downing.Decision
		host := served[downing.Provider](t, decided{class, &d})
		agree(t, func(r *rand.Rand) (error, error) {
			v := downingtest.RandomView(r)
			d = drawDowning(r, v)
			_, err := host.Decide(t.Context(), v)
			return err, downing.Check(v, class, d)
		})
	}
}

// allocated is an allocation strategy that says what it was told to.
type allocated struct {
	placed *allocation.AllocateResult
	moved  *allocation.RebalanceResult
}

func (a allocated) Allocate(context.Context, allocation.AllocateRequest) (allocation.AllocateResult, error) {
	return *a.placed, nil
}

func (a allocated) Rebalance(context.Context, allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	return *a.moved, nil
}

// regionOf draws a region: most are of the list and can be given shards.
func regionOf(r *rand.Rand, regions []allocation.RegionState) allocation.Region {
	open := slices.DeleteFunc(slices.Clone(regions), func(s allocation.RegionState) bool { return s.Leaving || s.Suspended || s.Unreachable })
	switch {
	case len(open) > 0 && !rarely(r, 32):
		return open[r.IntN(len(open))].ID
	case len(regions) > 0 && !rarely(r, 4):
		return regions[r.IntN(len(regions))].ID
	}
	return "of nobody"
}

func TestHostAndCheckAgreeAboutAllocation(t *testing.T) {
	var placed allocation.AllocateResult
	host := served[allocation.Strategy](t, allocated{placed: &placed})
	agree(t, func(r *rand.Rand) (error, error) {
		q := allocationtest.RandomAllocateRequest(r)
		placed = allocation.AllocateResult{Reason: reasonOf(r)}
		for _, p := range some(r, q.Shards) {
			placed.Placements = append(placed.Placements, allocation.Placement{Shard: p.Shard, Region: regionOf(r, q.Regions), Reason: reasonOf(r)})
			if rarely(r, 64) {
				placed.Placements[0].Shard = 1 << 31
			}
		}
		_, err := host.Allocate(t.Context(), q)
		return err, allocation.CheckAllocate(&q, &placed)
	})
}

func TestHostAndCheckAgreeAboutRebalancing(t *testing.T) {
	var moved allocation.RebalanceResult
	host := served[allocation.Strategy](t, allocated{moved: &moved})
	agree(t, func(r *rand.Rand) (error, error) {
		q := allocationtest.RandomRebalanceRequest(r)
		moved = allocation.RebalanceResult{Reason: reasonOf(r)}
		for _, from := range some(r, q.Regions) {
			if len(from.Shards) == 0 || len(moved.Moves) >= q.Budget.Room() && !rarely(r, 8) {
				continue
			}
			moved.Moves = append(moved.Moves, allocation.Move{
				Shard: from.Shards[r.IntN(len(from.Shards))], From: from.ID, To: regionOf(r, q.Regions), Reason: reasonOf(r),
			})
		}
		_, err := host.Rebalance(t.Context(), q)
		return err, allocation.CheckRebalance(&q, &moved)
	})
}

// judged is a judge that says what it was told to.
type judged struct{ answer *fd.Verdicts }

func (j judged) Judge(context.Context, fd.Batch) (fd.Verdicts, error) { return *j.answer, nil }

func TestHostAndCheckAgreeAboutFailureDetectors(t *testing.T) {
	var v fd.Verdicts
	host := served[fd.Judge](t, judged{&v})
	agree(t, func(r *rand.Rand) (error, error) {
		b := fd.Batch{Number: 1}
		for i := range r.IntN(6) {
			b.Subjects = append(b.Subjects, fd.Subject{ID: fmt.Sprintf("node-%d", i), Available: rarely(r, 2)})
		}
		v = fd.Verdicts{Number: 1}
		for _, s := range some(r, b.Subjects) {
			v.Changes = append(v.Changes, fd.Verdict{ID: s.ID, Available: s.Available == rarely(r, 16), Reason: reasonOf(r)})
		}
		switch r.IntN(8) {
		case 0:
			v.Number = 2
		case 1:
			v.Changes = append(v.Changes, fd.Verdict{ID: "nobody", Reason: "why"})
		}
		_, err := host.Judge(t.Context(), b)
		return err, v.Check(b)
	})
}

// joined is a decider that says what it was told to.
type joined struct{ answer *bootstrap.Decision }

func (j joined) Decide(context.Context, bootstrap.Observations) (bootstrap.Decision, error) {
	return *j.answer, nil
}

func TestHostAndCheckAgreeAboutJoinDeciders(t *testing.T) {
	var d bootstrap.Decision
	host := served[bootstrap.JoinDecider](t, joined{&d})
	agree(t, func(r *rand.Rand) (error, error) {
		o := bootstraptest.Random(r)
		var seeds []discovery.Target
		for _, p := range o.Points {
			seeds = append(seeds, p.SeedNodes...)
		}
		d = bootstrap.Decision{Action: bootstrap.Action(r.IntN(int(bootstrap.Form) + 1)), Reason: reasonOf(r)}
		if d.Action == bootstrap.Join || rarely(r, 8) {
			d.SeedNodes = some(r, seeds)
		}
		switch r.IntN(16) {
		case 0:
			d.SeedNodes = append(d.SeedNodes, discovery.Target{Host: "z.example", Port: 1})
		case 1:
			d.SeedNodes = append(d.SeedNodes, append(seeds, seeds...)...)
		case 2:
			d.Action = bootstrap.Form + 1
		}
		_, err := host.Decide(t.Context(), o)
		return err, d.Check(o)
	})
}

// found is a method of discovery that finds what it was told to.
type found struct{ answer *discovery.Targets }

func (f found) Lookup(context.Context, discovery.Query) (discovery.Targets, error) {
	return *f.answer, nil
}

func TestHostAndCheckAgreeAboutDiscovery(t *testing.T) {
	var a discovery.Targets
	host := served[discovery.Discovery](t, found{&a})
	agree(t, func(r *rand.Rand) (error, error) {
		all := []discovery.Target{{Host: "a.example", Port: 1}, {Host: "b.example"}, {Host: "10.0.0.1", Port: 65535}, {Host: "fd00::1", Port: 1}}
		if rarely(r, 2) {
			all = append(all, []discovery.Target{{Host: "UPPER", Port: 1}, {Port: 1}, {Host: "a:1"}, {Host: "fe80::1%eth0", Port: 1}, {Host: "10.0.0.01"}}[r.IntN(5)])
		}
		a = discovery.Targets{List: some(r, all), Reason: reasonOf(r), TTL: time.Duration(r.IntN(1000) - 100)}
		_, err := host.Lookup(t.Context(), discovery.Query{Service: "shop"})
		return err, a.Check()
	})
}

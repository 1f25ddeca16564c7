// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downingpolicy_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/loopbacktest"
	"github.com/quorate/quorate/plugins/internal/policies/downingpolicy"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Views whose members the plugin has kept. A host and a plugin run in memory, and what goes
// between them can be changed on its way ([rig]): first with plugins that keep members, then
// with those that do not, have forgotten, or say what is not so.

const long = 10 * time.Second

// recorder keeps the views that it is asked about, and spoils the lists that it was given.
type recorder struct{ views []downing.View }

func (r *recorder) Class() downing.Class { return downing.Class{} }

func (r *recorder) Decide(_ context.Context, v downing.View) (downing.Decision, error) {
	c := v
	c.Members, c.Seen, c.Unreachable = slices.Clone(v.Members), slices.Clone(v.Seen), slices.Clone(v.Unreachable)
	c.Base = make(gossip.Base, 0, len(v.Base))
	for _, voters := range v.Base {
		c.Base = append(c.Base, slices.Clone(voters))
	}
	r.views = append(r.views, c)
	slices.Reverse(v.Members)
	slices.Reverse(v.Seen)
	for _, voters := range v.Base {
		clear(voters)
	}
	return downing.Decision{Reason: "nobody"}, nil
}

// rig is a provider in a plugin, with the requests that reach the plugin.
type rig struct {
	pluginv1.UnimplementedDowningServer

	t        *testing.T
	provider *downingpolicy.Provider
	recorder *recorder
	requests []*pluginv1.DowningDecideRequest
	resent   atomic.Int64
	// change changes an answer on its way back.
	change func(*pluginv1.DowningDecideResponse)
	// serving is the plugin; [rig.restart] replaces it.
	serving pluginv1.DowningServer
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, recorder: new(recorder), change: func(*pluginv1.DowningDecideResponse) {}}
	r.restart()
	conn := loopbacktest.Conn(t, func(s grpc.ServiceRegistrar) { pluginv1.RegisterDowningServer(s, r) })
	r.provider = downingpolicy.New(client.Target{Conn: conn, Name: "p", Timeout: long, Resent: func() { r.resent.Add(1) }})
	return r
}

// restart replaces the plugin by one that has kept nothing.
func (r *rig) restart() {
	r.t.Helper()
	r.serving = served(r.t, r.recorder)
}

// served returns the plugin of a provider, without the way to it.
func served(tb testing.TB, provider downing.Provider) pluginv1.DowningServer {
	tb.Helper()
	return loopbacktest.Service[pluginv1.DowningServer](tb, downingpolicy.Contract().Policy().Service, provider)
}

func (r *rig) Decide(ctx context.Context, q *pluginv1.DowningDecideRequest) (*pluginv1.DowningDecideResponse, error) {
	r.requests = append(r.requests, proto.CloneOf(q))
	a, err := r.serving.Decide(ctx, q)
	if err == nil {
		r.change(a)
	}
	return a, err
}

// asks has the plugin decide about a view, and requires that the strategy saw that view and
// that the requests on the way were whole, true, or not, false.
func (r *rig) asks(v downing.View, whole ...bool) {
	r.t.Helper()
	r.requests, r.recorder.views = nil, nil
	_, err := r.provider.Decide(r.t.Context(), v)
	require.NoError(r.t, err)
	require.Len(r.t, r.recorder.views, 1)
	requireSameView(r.t, v, r.recorder.views[0])
	var got []bool
	for _, q := range r.requests {
		got = append(got, q.GetMembers() != nil)
	}
	require.Equal(r.t, whole, got)
}

// hundred returns what a node sees of 100 members, some of which are decorated.
func hundred() downing.View {
	v := splitView()
	decorate(newRand(1), &v)
	return v
}

func TestMembersThatAreKeptAreNotSentAgain(t *testing.T) {
	r := newRig(t)
	v := hundred()
	r.asks(v, true)
	long := proto.Size(r.requests[0])
	r.asks(v, false)
	require.Less(t, proto.Size(r.requests[0]), long/5)

	// What changes while a cluster is split: complaints, who has seen them, the time.
	v.Unreachable = append(slices.Clone(v.Unreachable), gossip.Record{
		Observer: v.Members[1].Node, Subject: v.Members[98].Node, Status: gossip.Terminated,
	})
	v.Seen, v.Stable, v.Unstable = v.Seen[2:50], time.Second, time.Minute
	r.asks(v, false)

	// The same members again, but other values.
	for i, m := range v.Members {
		c := *m
		v.Members[i] = &c
	}
	r.asks(v, false)
	require.Zero(t, r.resent.Load())
}

// Whatever the contract says of a member, and each node that no request has named yet, makes
// the request whole. The one before is not kept any more, so a view that comes back is whole
// too.
func TestAChangeOfMembersMakesTheRequestWhole(t *testing.T) {
	for name, change := range map[string]func(v *downing.View){
		"status":    func(v *downing.View) { v.Members[7].Status = gossip.Leaving },
		"up-number": func(v *downing.View) { v.Members[7].UpNumber++ },
		"zone":      func(v *downing.View) { v.Members[7].Zone = "elsewhere" },
		"version":   func(v *downing.View) { v.Members[7].AppVersion = "7" },
		"roles":     func(v *downing.View) { v.Members[7].Roles = []string{"other"} },
		"removed":   func(v *downing.View) { v.Members = v.Members[:99] },
		"other":     func(v *downing.View) { v.Base = append(slices.Clone(v.Base), []gossip.NodeID{downingtest.Node(7777)}) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			before := hundred()
			r.asks(before, true)
			after := before
			after.Members = nil
			for _, m := range before.Members {
				c := *m
				after.Members = append(after.Members, &c)
			}
			change(&after)
			r.asks(after, true)
			r.asks(after, false)
			if name == "other" {
				return // All of whom the view before names are kept.
			}
			r.asks(before, true)
		})
	}
}

// Any views, one after the other, reach the strategy as they were, although plugins are
// replaced between them and half of the answers deny that anything is kept.
func TestAnyOrderOfViewsArrivesAsItWas(t *testing.T) {
	left := 0
	for seed := range uint64(rounds / 10) {
		r, rnd := newRig(t), newRand(seed)
		r.change = func(a *pluginv1.DowningDecideResponse) { a.Kept *= uint64(rnd.IntN(2)) }
		views := append(downingtest.RandomSplit(rnd), downingtest.RandomView(rnd))
		for i := range views {
			decorate(rnd, &views[i])
		}
		for range 20 {
			if rnd.IntN(8) == 0 {
				r.restart()
			}
			v := views[rnd.IntN(len(views))]
			v.Stable = time.Duration(rnd.IntN(100))
			if rnd.IntN(2) == 0 {
				v.Seen = v.Seen[:rnd.IntN(len(v.Seen)+1)]
			}
			r.requests, r.recorder.views = nil, nil
			_, err := r.provider.Decide(t.Context(), v)
			require.NoError(t, err, "seed %d", seed)
			require.Len(t, r.recorder.views, 1, "seed %d", seed)
			requireSameView(t, v, r.recorder.views[0])
			if r.requests[0].GetMembers() == nil {
				left++
			}
		}
	}
	require.Positive(t, left)
}

// covers F56.
func TestAPluginThatHasForgottenIsSentTheWhole(t *testing.T) {
	r := newRig(t)
	r.asks(hundred(), true)
	r.asks(hundred(), false)
	r.restart()
	r.asks(hundred(), false, true)
	require.Equal(t, int64(1), r.resent.Load())
	r.asks(hundred(), false)
	require.Equal(t, int64(1), r.resent.Load())
}

// older is a plugin of the time before members were kept: it does not know the fields.
type older struct{ pluginv1.DowningServer }

func (o older) Decide(ctx context.Context, q *pluginv1.DowningDecideRequest) (*pluginv1.DowningDecideResponse, error) {
	q = proto.CloneOf(q)
	q.MembersNumber = 0
	return o.DowningServer.Decide(ctx, q)
}

func TestAnOlderPluginIsSentTheWholeEachTime(t *testing.T) {
	r := newRig(t)
	r.serving = older{r.serving}
	r.asks(hundred(), true)
	r.asks(hundred(), true)
	require.Zero(t, r.resent.Load())

	// An older program takes the place of one that kept members.
	r = newRig(t)
	r.asks(hundred(), true)
	r.serving = older{r.serving}
	r.asks(hundred(), false, true)
	r.asks(hundred(), true)
	require.Equal(t, int64(1), r.resent.Load())
}

// What a plugin says that it keeps counts only if it is what this request named.
func TestAPluginThatKeepsWhatItWasNotSentIsSentTheWhole(t *testing.T) {
	r := newRig(t)
	r.change = func(a *pluginv1.DowningDecideResponse) { a.Kept++ }
	r.asks(hundred(), true)
	r.asks(hundred(), true)
	require.Zero(t, r.resent.Load())
}

// liar is a plugin that says it keeps members and never does.
type liar struct{ older }

func (l liar) Decide(ctx context.Context, q *pluginv1.DowningDecideRequest) (*pluginv1.DowningDecideResponse, error) {
	a, err := l.older.Decide(ctx, q)
	if err == nil {
		a.Kept = q.GetMembersNumber()
	}
	return a, err
}

func TestAPluginThatDoesNotKeepWhatItSaysIsSentTheWhole(t *testing.T) {
	r := newRig(t)
	r.serving = liar{older{r.serving}}
	r.asks(hundred(), true)
	for range 3 {
		r.asks(hundred(), false, true)
	}
	require.Equal(t, int64(3), r.resent.Load())
}

// broken is a plugin that refuses every request.
type broken struct{ pluginv1.DowningServer }

func (broken) Decide(context.Context, *pluginv1.DowningDecideRequest) (*pluginv1.DowningDecideResponse, error) {
	return nil, status.Error(codes.FailedPrecondition, "no")
}

// A whole request that is refused is not sent again: the refusal is the answer.
func TestARefusalOfTheWholeIsAnError(t *testing.T) {
	r := newRig(t)
	r.asks(hundred(), true)
	r.serving = broken{}
	r.requests = nil
	_, err := r.provider.Decide(t.Context(), hundred())
	require.Error(t, err)
	require.Len(t, r.requests, 2)
	_, err = r.provider.Decide(t.Context(), hundred())
	require.Error(t, err)
	require.Len(t, r.requests, 3)
}

// A request without members that names none which are kept is refused, and so is one that
// leaves out one of the two.
func TestRequestsThatLeaveOutWhatIsNotKeptAreRefused(t *testing.T) {
	r := newRig(t)
	v := hundred()
	q, err := downingpolicy.ViewToProto(&v)
	require.NoError(t, err)
	q.MembersNumber = 7
	a, err := r.serving.Decide(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, uint64(7), a.GetKept())
	short := proto.CloneOf(q)
	short.Nodes, short.Members = nil, nil
	for number, code := range map[uint64]codes.Code{7: codes.OK, 6: codes.FailedPrecondition, 8: codes.FailedPrecondition, 0: codes.InvalidArgument} {
		short.MembersNumber = number
		_, err = r.serving.Decide(t.Context(), proto.CloneOf(short))
		require.Equal(t, code, status.Code(err), "number %d", number)
	}
	half := proto.CloneOf(q)
	half.Nodes = nil
	_, err = r.serving.Decide(t.Context(), half)
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	short.MembersNumber, short.Seen = 7, []uint32{100}
	_, err = r.serving.Decide(t.Context(), short)
	require.Equal(t, codes.InvalidArgument, status.Code(err))
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package failuredetectorpolicy_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/loopbacktest"
	"github.com/quorate/quorate/plugins/internal/policies/failuredetectorpolicy"
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Batches whose nodes the plugin has kept. A host and a plugin run in memory, and what goes
// between them can be changed on its way ([rig]): first with plugins that keep nodes, then with
// those that do not, have forgotten, or say what is not so. Last come requests as bytes.

// recorder is a judge that keeps the batches that it is asked about, and spoils what it was
// given.
type recorder struct {
	judge   fd.Judge
	batches []fd.Batch
}

func newRecorder(tb testing.TB) *recorder {
	tb.Helper()
	phi, err := fd.NewFactory(fd.Default())
	require.NoError(tb, err)
	return &recorder{judge: fd.NewDetectorJudge(phi)}
}

func (r *recorder) Judge(ctx context.Context, b fd.Batch) (fd.Verdicts, error) {
	r.batches = append(r.batches, clone(b))
	v, err := r.judge.Judge(ctx, clone(b))
	for i := range b.Subjects {
		clear(b.Subjects[i].Ages)
	}
	slices.Reverse(b.Subjects)
	return v, err
}

// clone returns a batch that shares nothing with b.
func clone(b fd.Batch) fd.Batch {
	b.Subjects = slices.Clone(b.Subjects)
	for i := range b.Subjects {
		b.Subjects[i].Ages = slices.Clone(b.Subjects[i].Ages)
	}
	return b
}

// rig is a judge in a plugin, with the requests that reach the plugin.
type rig struct {
	pluginv1.UnimplementedFailureDetectorServer

	t        *testing.T
	judge    *failuredetectorpolicy.Judge
	recorder *recorder
	requests []*pluginv1.JudgeRequest
	// change changes an answer on its way back.
	change func(*pluginv1.JudgeResponse)
	// serving is the plugin; [rig.restart] replaces it.
	serving pluginv1.FailureDetectorServer
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, change: func(*pluginv1.JudgeResponse) {}}
	r.restart()
	conn := loopbacktest.Conn(t, func(s grpc.ServiceRegistrar) { pluginv1.RegisterFailureDetectorServer(s, r) })
	r.judge = failuredetectorpolicy.New(client.Target{Conn: conn, Name: "p", Timeout: 10 * time.Second})
	return r
}

// restart replaces the plugin by one that has heard nothing.
func (r *rig) restart() {
	r.t.Helper()
	r.recorder = newRecorder(r.t)
	r.serving = served(r.t, r.recorder)
}

// served returns the plugin of a judge, without the way to it.
func served(tb testing.TB, judge fd.Judge) pluginv1.FailureDetectorServer {
	tb.Helper()
	return loopbacktest.Service[pluginv1.FailureDetectorServer](tb, failuredetectorpolicy.Contract().Policy().Service, judge)
}

func (r *rig) Judge(ctx context.Context, q *pluginv1.JudgeRequest) (*pluginv1.JudgeResponse, error) {
	r.requests = append(r.requests, proto.CloneOf(q))
	a, err := r.serving.Judge(ctx, q)
	if err == nil {
		r.change(a)
	}
	return a, err
}

// asks has the plugin judge a batch, and requires that the judge saw that batch and that the
// request had its nodes, whole, or not.
func (r *rig) asks(b fd.Batch, whole bool) fd.Verdicts {
	r.t.Helper()
	r.requests, r.recorder.batches = nil, nil
	v, err := r.judge.Judge(r.t.Context(), b)
	require.NoError(r.t, err)
	require.Equal(r.t, []fd.Batch{b}, r.recorder.batches)
	require.Len(r.t, r.requests, 1)
	require.Equal(r.t, whole, r.requests[0].GetNode() != nil)
	return v
}

// refuses requires that the plugin is out of step with a batch, of which the request had the
// nodes, whole, or not.
func (r *rig) refuses(b fd.Batch, whole bool) {
	r.t.Helper()
	r.requests = nil
	_, err := r.judge.Judge(r.t.Context(), b)
	require.ErrorIs(r.t, err, fd.ErrOutOfStep)
	require.Len(r.t, r.requests, 1)
	require.Equal(r.t, whole, r.requests[0].GetNode() != nil)
}

// hundred returns the batch of a number about 100 nodes that have answered once each.
func hundred(number uint64) fd.Batch {
	b := fd.Batch{Number: number}
	if number > 1 {
		b.Elapsed = time.Second
	}
	for i := range 100 {
		b.Subjects = append(b.Subjects, fd.Subject{
			ID: fmt.Sprintf("10.0.0.%d:7946#%016x", i, i+1), Available: true, Ages: []time.Duration{time.Duration(i) * time.Millisecond},
		})
	}
	return b
}

func TestNodesThatAreKeptAreNotSentAgain(t *testing.T) {
	r := newRig(t)
	r.asks(hundred(1), true)
	long := proto.Size(r.requests[0])
	r.asks(hundred(2), false)
	require.Less(t, proto.Size(r.requests[0]), long/4)

	// What changes while the nodes stay: verdicts, and how many answers there are.
	b := hundred(3)
	b.Subjects[7].Available, b.Subjects[8].Ages, b.Subjects[9].Ages = false, nil, []time.Duration{3, 2, 2}
	r.asks(b, false)
	r.asks(hundred(4), false)

	// A new session is begun with the nodes.
	r.asks(hundred(1), true)
	r.asks(hundred(2), false)
}

// Each change of the nodes makes a batch whole. The list before is not kept any more, so one that
// comes back is sent whole too.
func TestAChangeOfNodesMakesTheBatchWhole(t *testing.T) {
	for name, change := range map[string]func(b *fd.Batch){
		"another": func(b *fd.Batch) { b.Subjects[50].ID = "other" },
		"more":    func(b *fd.Batch) { b.Subjects = append(b.Subjects, fd.Subject{ID: "other"}) },
		"fewer":   func(b *fd.Batch) { b.Subjects = b.Subjects[:99] },
		"order":   func(b *fd.Batch) { slices.Reverse(b.Subjects) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.asks(hundred(1), true)
			for number := uint64(2); number < 4; number++ {
				b := hundred(number)
				change(&b)
				r.asks(b, number == 2)
			}
			r.asks(hundred(4), true)
		})
	}
	r := newRig(t)
	r.asks(hundred(1), true)
	none := fd.Batch{Number: 2}
	r.judgesNone(none)
	none.Number = 3
	r.judgesNone(none)
	r.asks(hundred(4), true)
}

// judgesNone has the plugin judge a batch without nodes, which says nothing of what is kept.
func (r *rig) judgesNone(b fd.Batch) {
	r.t.Helper()
	r.asks(b, false)
	require.Zero(r.t, r.requests[0].GetNodesNumber())
}

// life draws the batches that a node sends: nodes come, go, fall silent and answer again.
type life struct {
	rand  *rand.Rand
	nodes []fd.Subject
	named int
}

// next draws a batch, of which the elapsed time is that since the batch before.
func (l *life) next() fd.Batch {
	if len(l.nodes) == 0 || len(l.nodes) < 12 && l.rand.IntN(8) == 0 {
		l.named++
		at := l.rand.IntN(len(l.nodes) + 1)
		l.nodes = slices.Insert(l.nodes, at, fd.Subject{ID: fmt.Sprintf("node-%d", l.named), Available: true})
	}
	if len(l.nodes) > 1 && l.rand.IntN(12) == 0 {
		at := l.rand.IntN(len(l.nodes))
		l.nodes = slices.Delete(l.nodes, at, at+1)
	}
	b := clone(fd.Batch{Elapsed: time.Second, Subjects: l.nodes})
	for i := range b.Subjects {
		for range l.rand.IntN(3) * l.rand.IntN(2) {
			b.Subjects[i].Ages = append(b.Subjects[i].Ages, time.Duration(l.rand.Int64N(int64(time.Second))))
		}
		slices.SortFunc(b.Subjects[i].Ages, func(a, b time.Duration) int { return int(b - a) })
	}
	return b
}

// take does what a judge has said.
func (l *life) take(v fd.Verdicts) {
	for _, c := range v.Changes {
		for i := range l.nodes {
			if l.nodes[i].ID == c.ID {
				l.nodes[i].Available = c.Available
			}
		}
	}
}

// judged asks as a node does: a judge that is out of step is told of a new session.
func (r *rig) judged(b fd.Batch, number *uint64) fd.Verdicts {
	r.t.Helper()
	*number++
	if b.Number = *number; b.Number == 1 {
		b.Elapsed = 0
	}
	r.requests = nil
	v, err := r.judge.Judge(r.t.Context(), b)
	if errors.Is(err, fd.ErrOutOfStep) {
		*number, b.Number, b.Elapsed = 1, 1, 0
		v, err = r.judge.Judge(r.t.Context(), b)
	}
	require.NoError(r.t, err)
	require.Equal(r.t, b, r.recorder.batches[len(r.recorder.batches)-1])
	require.Equal(r.t, b.Number, v.Number)
	return v
}

// Any life of nodes gets equal verdicts from a plugin that is sent the nodes only when they
// change and from one that is sent them with each batch, although both are replaced now and then
// and half of the answers of the first deny that anything is kept. They are those of the judge that
// is asked without a wire.
func TestVerdictsDoNotDependOnWhatIsLeftOut(t *testing.T) {
	left, changes := 0, 0
	for seed := range uint64(40) {
		l := &life{rand: rand.New(rand.NewPCG(seed, 0x15))}
		keeps, whole, direct := newRig(t), newRig(t), newRecorder(t)
		keeps.change = func(a *pluginv1.JudgeResponse) { a.Kept *= uint64(l.rand.IntN(2)) }
		whole.change = func(a *pluginv1.JudgeResponse) { a.Kept = 0 }
		var one, other uint64
		for range 60 {
			if l.rand.IntN(15) == 0 {
				keeps.restart()
				whole.restart()
			}
			b := l.next()
			v := keeps.judged(b, &one)
			require.Equal(t, whole.judged(b, &other), v, "seed %d", seed)
			require.Equal(t, one, other, "seed %d", seed)
			if b.Number = one; one == 1 {
				b.Elapsed = 0
			}
			said, err := direct.judge.Judge(t.Context(), clone(b))
			require.NoError(t, err)
			require.Equal(t, said.Changes, v.Changes, "seed %d", seed)
			require.NotNil(t, whole.requests[0].GetNode(), "seed %d", seed)
			if keeps.requests[0].GetNode() == nil {
				left++
			}
			changes += len(v.Changes)
			l.take(v)
		}
	}
	require.Greater(t, left, 50)
	require.Greater(t, changes, 100)
}

// covers F56.
func TestAPluginThatHasForgottenIsToldAnew(t *testing.T) {
	r := newRig(t)
	r.asks(hundred(1), true)
	r.asks(hundred(2), false)
	r.restart()
	r.refuses(hundred(3), false)
	r.refuses(hundred(3), true)
	r.asks(hundred(1), true)
	r.asks(hundred(2), false)
}

// older is a plugin of the time before nodes were kept: it does not know the fields.
type older struct {
	pluginv1.FailureDetectorServer
}

func (o older) Judge(ctx context.Context, q *pluginv1.JudgeRequest) (*pluginv1.JudgeResponse, error) {
	q = proto.CloneOf(q)
	q.NodesNumber = 0
	return o.FailureDetectorServer.Judge(ctx, q)
}

func TestAnOlderPluginIsSentTheNodesEachTime(t *testing.T) {
	r := newRig(t)
	r.serving = older{r.serving}
	for number := uint64(1); number < 4; number++ {
		r.asks(hundred(number), true)
	}

	// An older program takes the place of one that kept nodes.
	r = newRig(t)
	r.asks(hundred(1), true)
	r.restart()
	r.serving = older{r.serving}
	r.refuses(hundred(2), false)
	r.asks(hundred(1), true)
	r.asks(hundred(2), true)
}

// What a plugin says that it keeps counts only if it is what this request named.
func TestAPluginThatKeepsWhatItWasNotSentIsSentTheNodes(t *testing.T) {
	r := newRig(t)
	r.change = func(a *pluginv1.JudgeResponse) { a.Kept++ }
	r.asks(hundred(1), true)
	r.asks(hundred(2), true)
}

// liar is a plugin that says it keeps nodes and never does.
type liar struct{ older }

func (l liar) Judge(ctx context.Context, q *pluginv1.JudgeRequest) (*pluginv1.JudgeResponse, error) {
	a, err := l.older.Judge(ctx, q)
	if err == nil {
		a.Kept = q.GetNodesNumber()
	}
	return a, err
}

// A plugin that does not keep what it says judges in short sessions.
func TestAPluginThatDoesNotKeepWhatItSaysIsToldAnew(t *testing.T) {
	r := newRig(t)
	r.serving = liar{older{r.serving}}
	for range 3 {
		r.asks(hundred(1), true)
		r.refuses(hundred(2), false)
	}
}

// A plugin refuses whatever rests on nodes that it does not have or does not fit them, and what
// it keeps stays as it was.
func TestBatchesThatLeaveOutWhatIsNotKeptAreRefused(t *testing.T) {
	r := newRig(t)
	whole := hundred(1)
	q, err := failuredetectorpolicy.BatchToProto(&whole)
	require.NoError(t, err)
	short := proto.CloneOf(q)
	short.Node, short.NodesNumber = nil, 7
	_, err = r.serving.Judge(t.Context(), proto.CloneOf(short))
	require.Equal(t, codes.FailedPrecondition, status.Code(err), "nothing was ever kept")
	q.NodesNumber = 7
	a, err := r.serving.Judge(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, uint64(7), a.GetKept())
	short.Number = 2
	for name, c := range map[string]struct {
		change func(*pluginv1.JudgeRequest)
		code   codes.Code
	}{
		"a number before":   {func(q *pluginv1.JudgeRequest) { q.NodesNumber = 6 }, codes.FailedPrecondition},
		"a number to come":  {func(q *pluginv1.JudgeRequest) { q.NodesNumber = 8 }, codes.FailedPrecondition},
		"no number":         {func(q *pluginv1.JudgeRequest) { q.NodesNumber = 0 }, codes.InvalidArgument},
		"a batch to come":   {func(q *pluginv1.JudgeRequest) { q.Number = 3 }, codes.FailedPrecondition},
		"a verdict less":    {func(q *pluginv1.JudgeRequest) { q.Available = q.Available[1:] }, codes.InvalidArgument},
		"a verdict more":    {func(q *pluginv1.JudgeRequest) { q.Available = append(q.Available, true) }, codes.InvalidArgument},
		"a count less":      {func(q *pluginv1.JudgeRequest) { q.AnswerCount = q.AnswerCount[1:] }, codes.InvalidArgument},
		"an answer less":    {func(q *pluginv1.JudgeRequest) { q.AgeNanos = q.AgeNanos[1:] }, codes.InvalidArgument},
		"an answer more":    {func(q *pluginv1.JudgeRequest) { q.AgeNanos = append(q.AgeNanos, 0) }, codes.InvalidArgument},
		"an answer to come": {func(q *pluginv1.JudgeRequest) { q.AgeNanos[3] = -1 }, codes.InvalidArgument},
		"a time backwards":  {func(q *pluginv1.JudgeRequest) { q.ElapsedNanos = -1 }, codes.InvalidArgument},
	} {
		bad := proto.CloneOf(short)
		c.change(bad)
		_, err := r.serving.Judge(t.Context(), bad)
		require.Equal(t, c.code, status.Code(err), name)
	}
	_, err = r.serving.Judge(t.Context(), short)
	require.NoError(t, err)
}

// The bytes of a batch with its nodes, of the next one without, and of an answer are those of the
// documentation.
func TestTheBytesOfBatches(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/plugins.md")
	require.NoError(t, err)
	page := strings.ReplaceAll(string(text), " ", "")
	is := func(m proto.Message, want string) {
		t.Helper()
		bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		require.NoError(t, err)
		require.Equal(t, want, hex.EncodeToString(bytes))
		require.Contains(t, page, "\n"+want+"\n")
	}
	b := two()
	b.Number, b.Elapsed = 1, 0
	q, err := failuredetectorpolicy.BatchToProto(&b)
	require.NoError(t, err)
	q.NodesNumber = 300
	is(q, "0801"+"1a0161"+"1a0162"+"22020001"+"2a020002"+"32020201"+"38ac02")
	q.Number, q.ElapsedNanos, q.Node = 2, int64(time.Second), nil
	is(q, "0802"+"108094ebdc03"+"22020001"+"2a020002"+"32020201"+"38ac02")
	is(&pluginv1.JudgeResponse{Number: 2, Node: []uint32{1}, Reason: []uint32{0}, Reasons: []string{"r"}, Kept: 300},
		"0802"+"120101"+"1a0100"+"220172"+"28ac02")
}

// FuzzKept reads bytes as a request without nodes, of a host whose plugin has kept them. A
// request that is accepted is about just those, and arrives as it was when it is sent again with
// them.
func FuzzKept(f *testing.F) {
	b := two()
	b.Number, b.Elapsed = 1, 0
	whole, err := failuredetectorpolicy.BatchToProto(&b)
	require.NoError(f, err)
	whole.NodesNumber = 7
	asked := newRecorder(f)
	plugin := served(f, asked)
	next := two()
	short, err := failuredetectorpolicy.BatchToProto(&next)
	require.NoError(f, err)
	short.Node = nil
	f.Add(wiretest.Bytes(f, short))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, bytes []byte) {
		var r pluginv1.JudgeRequest
		if proto.Unmarshal(bytes, &r) != nil {
			return
		}
		_, err := plugin.Judge(t.Context(), proto.CloneOf(whole))
		require.NoError(t, err)
		r.Node, r.NodesNumber, asked.batches = nil, whole.GetNodesNumber(), nil
		_, _ = plugin.Judge(t.Context(), &r) // What the judge was asked counts, and not what it said.
		if len(asked.batches) == 0 {
			return
		}
		r.Node = whole.GetNode()
		b, err := failuredetectorpolicy.BatchFromProto(&r)
		require.NoError(t, err)
		require.Equal(t, b, asked.batches[0])
	})
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package failuredetectorpolicy_test

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
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/loopbacktest"
	"github.com/quorate/quorate/plugins/internal/policies/failuredetectorpolicy"
	"github.com/quorate/quorate/plugins/internal/server"
	"github.com/quorate/quorate/plugins/internal/wire"
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Batches and verdicts go over the wire and arrive as they were. Then come those that are
// refused, and the sizes that fit. Last, a judge is asked one call at a time.

// drawn returns a batch, and verdicts about it.
func drawn(seed uint64) (fd.Batch, fd.Verdicts) {
	r := rand.New(rand.NewPCG(seed, 0x12))
	b := fd.Batch{Number: 1 + r.Uint64N(3)}
	if b.Number > 1 {
		b.Elapsed = time.Duration(r.Int64N(int64(time.Minute)))
	}
	v := fd.Verdicts{Number: b.Number}
	for i := range r.IntN(10) {
		s := fd.Subject{ID: fmt.Sprintf("10.0.0.%d:7946#%x", i, r.Uint64()), Available: r.IntN(3) > 0}
		for range r.IntN(4) {
			s.Ages = append(s.Ages, time.Duration(r.Int64N(int64(time.Second))))
		}
		slices.SortFunc(s.Ages, func(a, b time.Duration) int { return int(b - a) })
		b.Subjects = append(b.Subjects, s)
		if r.IntN(2) == 0 {
			v.Changes = append(v.Changes, fd.Verdict{ID: s.ID, Available: !s.Available, Reason: fmt.Sprintf("reason %d", r.IntN(3))})
		}
	}
	return b, v
}

func TestBatchesAndVerdictsArriveAsTheyWere(t *testing.T) {
	for seed := range uint64(500) {
		b, v := drawn(seed)
		r, err := failuredetectorpolicy.BatchToProto(&b)
		require.NoError(t, err, "seed %d", seed)
		got, err := failuredetectorpolicy.BatchFromProto(wiretest.Over(t, r, &pluginv1.JudgeRequest{}))
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, b, got, "seed %d", seed)
		p, err := failuredetectorpolicy.VerdictsToProto(&b, &v)
		require.NoError(t, err, "seed %d", seed)
		said, err := failuredetectorpolicy.VerdictsFromProto(&b, wiretest.Over(t, p, &pluginv1.JudgeResponse{}))
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, v, said, "seed %d", seed)
	}
}

// two returns a batch about two nodes, of which the first is unavailable.
func two() fd.Batch {
	return fd.Batch{Number: 2, Elapsed: time.Second, Subjects: []fd.Subject{
		{ID: "a"}, {ID: "b", Available: true, Ages: []time.Duration{2, 1}},
	}}
}

func TestBatchesAreHeldAgainstBounds(t *testing.T) {
	for name, change := range map[string]func(*fd.Batch){
		"number":   func(b *fd.Batch) { b.Number = 0 },
		"elapsed":  func(b *fd.Batch) { b.Elapsed = -1 },
		"first":    func(b *fd.Batch) { b.Number = 1 },
		"no id":    func(b *fd.Batch) { b.Subjects[0].ID = "" },
		"long id":  func(b *fd.Batch) { b.Subjects[0].ID = strings.Repeat("i", 513) },
		"twice":    func(b *fd.Batch) { b.Subjects[1].ID = "a" },
		"future":   func(b *fd.Batch) { b.Subjects[1].Ages[1] = -1 },
		"rising":   func(b *fd.Batch) { b.Subjects[1].Ages[1] = 3 },
		"nodes":    func(b *fd.Batch) { b.Subjects = make([]fd.Subject, wire.MaxNodes+1) },
		"arrivals": func(b *fd.Batch) { b.Subjects[1].Ages = make([]time.Duration, 1<<20+1) },
	} {
		b := two()
		change(&b)
		_, err := failuredetectorpolicy.BatchToProto(&b)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
	for name, change := range map[string]func(*pluginv1.JudgeRequest){
		"number":   func(r *pluginv1.JudgeRequest) { r.Number = 0 },
		"elapsed":  func(r *pluginv1.JudgeRequest) { r.ElapsedNanos = -1 },
		"columns":  func(r *pluginv1.JudgeRequest) { r.Available = r.Available[1:] },
		"count":    func(r *pluginv1.JudgeRequest) { r.AnswerCount[1] = 3 },
		"nobody's": func(r *pluginv1.JudgeRequest) { r.AnswerCount[1] = 1 },
		"rising":   func(r *pluginv1.JudgeRequest) { r.AgeNanos[1] = 3 },
		"nodes":    func(r *pluginv1.JudgeRequest) { r.Node = make([]string, wire.MaxNodes+1) },
	} {
		b := two()
		r, err := failuredetectorpolicy.BatchToProto(&b)
		require.NoError(t, err)
		change(r)
		_, err = failuredetectorpolicy.BatchFromProto(r)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
}

// Verdicts about nodes that were not asked about, unchanged ones and those without a reason are
// refused on both sides.
func TestVerdictsAreHeldAgainstTheBatch(t *testing.T) {
	b := two()
	for name, v := range map[string]fd.Verdicts{
		"number":    {Number: 3},
		"stranger":  {Number: 2, Changes: []fd.Verdict{{ID: "c", Reason: "r"}}},
		"unchanged": {Number: 2, Changes: []fd.Verdict{{ID: "a", Reason: "r"}}},
		"no reason": {Number: 2, Changes: []fd.Verdict{{ID: "b"}}},
		"twice":     {Number: 2, Changes: []fd.Verdict{{ID: "b", Reason: "r"}, {ID: "b", Reason: "r"}}},
	} {
		_, err := failuredetectorpolicy.VerdictsToProto(&b, &v)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
	for name, p := range map[string]*pluginv1.JudgeResponse{
		"number":    {Number: 1},
		"stranger":  {Number: 2, Node: []uint32{2}, Reason: []uint32{0}, Reasons: []string{"r"}},
		"twice":     {Number: 2, Node: []uint32{1, 1}, Reason: []uint32{0, 0}, Reasons: []string{"r"}},
		"more":      {Number: 2, Node: make([]uint32, 3), Reason: make([]uint32, 3), Reasons: []string{"r"}},
		"columns":   {Number: 2, Node: []uint32{1}, Reasons: []string{"r"}},
		"reason":    {Number: 2, Node: []uint32{1}, Reason: []uint32{1}, Reasons: []string{"r"}},
		"reasons":   {Number: 2, Reasons: []string{"r"}},
		"no reason": {Number: 2, Node: []uint32{1}, Reason: []uint32{0}, Reasons: []string{""}},
		"long":      {Number: 2, Node: []uint32{1}, Reason: []uint32{0}, Reasons: []string{strings.Repeat("r", wire.MaxTextBytes+1)}},
	} {
		_, err := failuredetectorpolicy.VerdictsFromProto(&b, p)
		require.ErrorIs(t, err, wire.ErrMalformed, name)
	}
	p, err := failuredetectorpolicy.VerdictsToProto(&b, &fd.Verdicts{Number: 2, Changes: []fd.Verdict{{ID: "b", Reason: "a\n" + strings.Repeat("r", wire.MaxTextBytes)}}})
	require.NoError(t, err)
	require.Len(t, p.GetReasons()[0], wire.MaxTextBytes, "a long reason is cut, not refused")
}

// A batch of the largest cluster, with what a node keeps of each member, fits into a request.
func TestTheLargestBatchFits(t *testing.T) {
	b := fd.Batch{Number: 1}
	for i := range wire.MaxNodes {
		b.Subjects = append(b.Subjects, fd.Subject{
			ID: fmt.Sprintf("%s:%d#0123456789abcdef", strings.Repeat("h", 60), i), Available: true, Ages: slices.Repeat([]time.Duration{time.Minute}, 8),
		})
	}
	r, err := failuredetectorpolicy.BatchToProto(&b)
	require.NoError(t, err)
	require.Less(t, proto.Size(r), plugins.MaxRequestBytes)
}

// slow is a judge that notices when it is asked twice at a time.
type slow struct {
	t       *testing.T
	asked   chan struct{}
	working chan struct{}
}

func (s slow) Judge(ctx context.Context, b fd.Batch) (fd.Verdicts, error) {
	select {
	case s.working <- struct{}{}:
	default:
		s.t.Error("a judge is asked twice at a time")
	}
	defer func() { <-s.working }()
	if b.Number == 1 {
		close(s.asked)
		<-ctx.Done()
		return fd.Verdicts{}, ctx.Err()
	}
	return fd.Verdicts{Number: b.Number}, nil
}

func TestAJudgeIsAskedOneCallAtATime(t *testing.T) {
	judge := slow{t, make(chan struct{}), make(chan struct{}, 1)}
	s := server.New(server.Strategy{
		Service: failuredetectorpolicy.Contract().Policy().Service, Name: "slow", Configure: func([]byte) (any, error) { return judge, nil },
	}, slog.New(slog.DiscardHandler))
	conn := loopbacktest.Conn(t, func(r grpc.ServiceRegistrar) { s.Register(r) })
	_, err := client.Configure(t.Context(), conn, "slow", "", nil)
	require.NoError(t, err)
	j := failuredetectorpolicy.New(client.Target{Conn: conn, Name: "slow", Timeout: 10 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { // Ends with its call, which is cancelled.
		_, err := j.Judge(ctx, fd.Batch{Number: 1})
		first <- err
	}()
	<-judge.asked
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
	v, err := j.Judge(t.Context(), fd.Batch{Number: 2})
	require.NoError(t, err)
	require.Equal(t, uint64(2), v.Number)
}

// A process that has not had the batches before says so, and is heard in a new session.
func TestAProcessThatIsNewIsOutOfStep(t *testing.T) {
	phi, err := fd.NewFactory(fd.Default())
	require.NoError(t, err)
	s := server.New(server.Strategy{
		Service: failuredetectorpolicy.Contract().Policy().Service, Name: "phi", Configure: func([]byte) (any, error) { return fd.NewDetectorJudge(phi), nil },
	}, slog.New(slog.DiscardHandler))
	conn := loopbacktest.Conn(t, func(r grpc.ServiceRegistrar) { s.Register(r) })
	_, err = client.Configure(t.Context(), conn, "phi", "", nil)
	require.NoError(t, err)
	j := failuredetectorpolicy.New(client.Target{Conn: conn, Name: "phi", Timeout: 10 * time.Second})
	_, err = j.Judge(t.Context(), two())
	require.ErrorIs(t, err, fd.ErrOutOfStep)
	require.ErrorIs(t, err, plugins.ErrRequest)
	b := two()
	b.Number, b.Elapsed = 1, 0
	_, err = j.Judge(t.Context(), b)
	require.NoError(t, err)
	_, err = j.Judge(t.Context(), two())
	require.NoError(t, err)
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fdtest

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fd"
)

func TestTheJudgeOfBuiltInDetectorsPasses(t *testing.T) {
	for _, strategy := range fd.BuiltIns() {
		t.Run(strategy, func(t *testing.T) {
			TestJudge(t, func(tb testing.TB) fd.Judge {
				tb.Helper()
				c := fd.Default()
				c.Strategy = strategy
				factory, err := fd.NewFactory(c)
				require.NoError(tb, err)
				return fd.NewDetectorJudge(factory)
			})
		})
	}
}

// judgeFunc is a judge that is a function.
type judgeFunc func(context.Context, fd.Batch) (fd.Verdicts, error)

func (f judgeFunc) Judge(ctx context.Context, b fd.Batch) (fd.Verdicts, error) { return f(ctx, b) }

// noticed remembers a failure in place of failing the test.
type noticed struct {
	testing.TB
	failed atomic.Bool
}

func (n *noticed) Helper() {}

func (n *noticed) Errorf(string, ...any) { n.failed.Store(true) }

func (n *noticed) Fatalf(string, ...any) {
	n.failed.Store(true)
	runtime.Goexit()
}

// Each part of the suite finds the judge that breaks its rule.
func TestTheSuiteFindsJudgesThatBreakTheContract(t *testing.T) {
	type check func(testing.TB, func(testing.TB) fd.Judge, uint64)
	made := 0
	phi, err := fd.NewFactory(fd.Default())
	require.NoError(t, err)
	for name, test := range map[string]struct {
		part   check
		broken func(inner *fd.DetectorJudge) judgeFunc
	}{
		"another number": {checkVerdicts, func(inner *fd.DetectorJudge) judgeFunc {
			return func(ctx context.Context, b fd.Batch) (fd.Verdicts, error) {
				v, err := inner.Judge(ctx, b)
				v.Number++
				return v, err
			}
		}},
		"two that differ": {checkTwins, func(*fd.DetectorJudge) judgeFunc {
			made++
			id := made
			return func(_ context.Context, b fd.Batch) (fd.Verdicts, error) {
				v := fd.Verdicts{Number: b.Number}
				if id%2 == 0 && b.Number == 7 {
					s := b.Subjects[0]
					v.Changes = []fd.Verdict{{ID: s.ID, Available: !s.Available, Reason: "the second says so"}}
				}
				return v, nil
			}
		}},
		"goes by places": {checkOrder, func(inner *fd.DetectorJudge) judgeFunc {
			var first []string // It takes the nodes of a batch for the first ones of the session.
			return func(ctx context.Context, b fd.Batch) (fd.Verdicts, error) {
				v, err := inner.Judge(ctx, b)
				for i := len(first); i < len(b.Subjects); i++ {
					first = append(first, b.Subjects[i].ID)
				}
				v.Changes = nil
				if s := b.Subjects[0]; s.ID == first[0] {
					v.Changes = []fd.Verdict{{ID: s.ID, Available: !s.Available, Reason: "it is the first"}}
				}
				return v, err
			}
		}},
		"remembers": {checkSessions, func(*fd.DetectorJudge) judgeFunc {
			batches := 0
			return func(_ context.Context, b fd.Batch) (fd.Verdicts, error) {
				batches++
				v := fd.Verdicts{Number: b.Number}
				if s := b.Subjects[0]; batches > judgeBatches {
					v.Changes = []fd.Verdict{{ID: s.ID, Available: !s.Available, Reason: "tired"}}
				}
				return v, nil
			}
		}},
		"never out of step": {checkSteps, func(*fd.DetectorJudge) judgeFunc {
			return func(_ context.Context, b fd.Batch) (fd.Verdicts, error) { return fd.Verdicts{Number: b.Number}, nil }
		}},
		"accuses everybody": {checkRegular, func(*fd.DetectorJudge) judgeFunc {
			return func(_ context.Context, b fd.Batch) (fd.Verdicts, error) {
				return fd.Verdicts{Number: b.Number, Changes: []fd.Verdict{{ID: b.Subjects[0].ID, Reason: "I do not like it"}}}, nil
			}
		}},
		"few nodes": {checkMany, func(inner *fd.DetectorJudge) judgeFunc {
			return func(ctx context.Context, b fd.Batch) (fd.Verdicts, error) {
				if len(b.Subjects) > 100 {
					return fd.Verdicts{}, errors.New("too many")
				}
				return inner.Judge(ctx, b)
			}
		}},
		"nonsense when it ends": {checkEnded, func(*fd.DetectorJudge) judgeFunc {
			return func(context.Context, fd.Batch) (fd.Verdicts, error) { return fd.Verdicts{}, nil }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			n, done := &noticed{TB: t}, make(chan struct{})
			go func() { // Ends with the part, or with its Goexit; the test waits.
				defer close(done)
				test.part(n, func(tb testing.TB) fd.Judge { tb.Helper(); return test.broken(fd.NewDetectorJudge(phi)) }, 1)
			}()
			<-done
			require.True(t, n.failed.Load(), "the fault was not found")
		})
	}
}

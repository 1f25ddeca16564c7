// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/asking"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// How many shards of a kind are in use, for kinds that set Kind.InUse: ScaleOf asks the coordinator, and
// Rescale has it change the number and asks until the change counts, whatever becomes of the coordinator.

// Scale is how many of the first shards of a kind are in use, under a revision that grows by one with each
// change. The zero value is that of a kind in which all are, always.
type Scale struct {
	Revision uint64 `json:"revision"` // 1 for the number that the first nodes were configured with.
	Count    int    `json:"count"`
}

// ScaleState is how far the number of shards in use has come.
type ScaleState struct {
	Scale
	// Next is the number to which a change is under way, for which all shards stop; 0: none is.
	Next int `json:"next,omitempty"`
	// Complete says that no change is under way, and that all nodes know Scale.
	Complete bool `json:"complete"`
}

var (
	// ErrScaleBusy is wrapped by a [*ScaleError] when another change is under way, or came first.
	ErrScaleBusy = errors.New("another change of the number is under way, or came first")
	// ErrScaleStuck is wrapped by a [*ScaleError] when something did not stop within the handoff timeout: the change was
	// called off, and what had stopped runs again.
	ErrScaleStuck = errors.New("not everything has stopped in time, and the change was called off")
	// ErrScaleUnknown is wrapped by a [*ScaleError] when the context ended before the outcome of a change was known: it
	// may be under way, may come to its end, and may be lost with the coordinator.
	ErrScaleUnknown = errors.New("the outcome of the change is not known")
)

// ScaleError says why the number of shards in use was not changed, or is not known. It wraps [ErrScaleBusy],
// [ErrScaleStuck], [ErrScaleUnknown], or [ErrInvalid] for what is of no use to try again.
type ScaleError struct {
	Kind   string
	Count  int
	Detail string // In words; may be empty.
	Err    error

	asked bool // It is the error of [ScaleOf], which changes nothing.
}

// Error says what was to be changed, and why it was not.
func (e *ScaleError) Error() string {
	what := fmt.Sprintf("%d shards cannot be put into use", e.Count)
	if e.asked {
		what = "how many shards are in use is not to be had"
	}
	text := fmt.Sprintf("sharding: kind %q: %s: %v", protocol.Clip(e.Kind), what, e.Err)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap returns what kind of error it is.
func (e *ScaleError) Unwrap() error { return e.Err }

// scalePoll is how often the coordinator is asked how far a change has come.
const scalePoll = 200 * time.Millisecond

// ScaleOf returns how many shards of a kind are in use, by the word of the kind's coordinator. Any node may be asked
// that runs the kind. The error is that of ctx, [ErrClosed], or a [*ScaleError]: it wraps [ErrScaleUnknown] if no
// coordinator answers within two seconds.
func ScaleOf(ctx context.Context, h Host, kind string) (ScaleState, error) {
	a, err := askScale(ctx, h.Sharding(), kind, 0, 0)
	if err == nil && a.Refusal != control.ScaleAccepted {
		refused := refusedScale(kind, 0, a)
		refused.asked = true
		err = refused
	}
	return ScaleState{
		Scale: scaleOf(a.Current), Next: int(a.Next.Count), Complete: a.Refusal == control.ScaleAccepted && a.Next.Count == 0 && a.Told,
	}, err
}

// Rescale changes how many shards of a kind are in use, and returns when all nodes know of it and the shards are about
// to start. Every shard of the kind stops first, within the handoff timeout, then the next revision is told to all
// nodes, then the shards in use start: nothing of two revisions runs at one time. Any node may be asked that runs the
// kind. A change survives the end of its coordinator as long as the caller waits: it is asked for again. When the
// number is that in use nothing happens. The error is a [*ScaleError], that of ctx if nothing was asked for yet, or
// [ErrClosed].
func Rescale(ctx context.Context, h Host, kind string, count int) (Scale, error) {
	s := h.Sharding()
	if count < 1 || count > protocol.MaxShards {
		return Scale{}, &ScaleError{Kind: kind, Count: count, Err: ErrInvalid}
	}
	before, err := awaitScale(ctx, s, kind, count)
	if err != nil {
		return Scale{}, err
	}
	wanted := rescaling{system: s, kind: kind, base: before.Current.Revision, count: count}
	for {
		now, done, err := wanted.step(ctx)
		if done || err != nil {
			return now, err
		}
		if err := asking.Pause(ctx, scalePoll); err != nil {
			return now, &ScaleError{Kind: kind, Count: count, Detail: err.Error(), Err: ErrScaleUnknown}
		}
	}
}

// rescaling is a change of the number that somebody waits for.
type rescaling struct {
	system *System
	kind   string
	base   uint64
	count  int
	begun  bool // A coordinator has accepted it.
}

// step asks for the change, or how far it has come, and reports whether it is done.
func (c *rescaling) step(ctx context.Context) (now Scale, done bool, err error) {
	count := uint32(0)
	if !c.begun {
		count = uint32(c.count) // Rescale has looked.
	}
	a, err := askScale(ctx, c.system, c.kind, c.base, count)
	now = scaleOf(a.Current)
	switch {
	case err != nil && c.begun && ctx.Err() != nil:
		return now, false, &ScaleError{Kind: c.kind, Count: c.count, Detail: err.Error(), Err: ErrScaleUnknown}
	case err != nil:
		return now, false, err
	case a.Refusal == control.ScaleUnavailable: // Another coordinator comes.
		return now, false, nil
	case a.Refusal != control.ScaleAccepted:
		return now, false, refusedScale(c.kind, c.count, a)
	}
	return now, c.isDone(a), c.outcome(a)
}

// isDone reports whether all nodes know that the number counts.
func (c *rescaling) isDone(a control.ScaleAnswered) bool {
	changed := a.Current.Revision == c.base || a.Current.Revision == c.base+1
	return changed && int(a.Current.Count) == c.count && a.Told && a.Next.Count == 0
}

// outcome says why the change will not come to its end. A coordinator that knows nothing of it, and has not called it
// off, is a new one: it is asked for the change.
func (c *rescaling) outcome(a control.ScaleAnswered) error {
	switch {
	case a.Current.Revision > c.base+1, a.Current.Revision == c.base+1 && int(a.Current.Count) != c.count:
		return &ScaleError{Kind: c.kind, Count: c.count, Detail: fmt.Sprintf("the revision is %d, with %d in use", a.Current.Revision, a.Current.Count), Err: ErrScaleBusy}
	case c.begun && a.CalledOff == c.base+1 && a.Next.Count == 0:
		return &ScaleError{Kind: c.kind, Count: c.count, Detail: a.Detail, Err: ErrScaleStuck}
	}
	c.begun = a.Current.Revision > c.base || a.Next.Count > 0
	return nil
}

// refusedScale makes an error of a refusal.
func refusedScale(kind string, count int, a control.ScaleAnswered) *ScaleError {
	e := &ScaleError{Kind: kind, Count: count, Detail: a.Detail}
	switch a.Refusal {
	case control.ScaleBusy, control.ScaleStale:
		e.Err = ErrScaleBusy
	case control.ScaleUnavailable:
		e.Err = ErrScaleUnknown
	default:
		e.Err = ErrInvalid
	}
	return e
}

// awaitScale asks until a coordinator says how things are, before the number is changed to count.
func awaitScale(ctx context.Context, s *System, kind string, count int) (control.ScaleAnswered, error) {
	for {
		a, err := askScale(ctx, s, kind, 0, 0)
		switch {
		case err != nil:
			return a, err
		case a.Refusal == control.ScaleUnavailable:
		case a.Refusal != control.ScaleAccepted:
			return a, refusedScale(kind, count, a)
		default:
			return a, nil
		}
		if err := asking.Pause(ctx, scalePoll); err != nil {
			return a, err
		}
	}
}

// askScale asks the coordinator of a kind for a change, or with a count of 0 how things are.
func askScale(ctx context.Context, s *System, kind string, base uint64, count uint32) (control.ScaleAnswered, error) {
	if s.router(kind) == nil {
		return control.ScaleAnswered{}, noKind(kind)
	}
	answer, err := s.ask(ctx, func(id uint64) machine.Input {
		return control.ScaleTo{Kind: kind, ID: id, Base: base, Count: count}
	})
	a, _ := answer.(control.ScaleAnswered)
	return a, err
}

func scaleOf(s control.Scale) Scale { return Scale{Revision: s.Revision, Count: int(s.Count)} }

// Scale returns how many shards of the kind are in use, and under which revision the entity was started. No entity
// of another revision runs anywhere. The zero value: the kind does not set [Kind.InUse].
func (c *Context) Scale() Scale {
	if s := c.program.scale.Load(); s != nil {
		return scaleOf(*s)
	}
	return Scale{}
}

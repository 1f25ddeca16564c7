// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/asking"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/internal/strategy"
)

// What is changed while a system runs: drained nodes, single moves, the number of shards; settings, with the allocation
// strategy; and how many shards of a kind are in use.

// Drain has this node host nothing, of any kind, while another can: its shards move to other
// nodes with their streams, a few at a time, and it is given no other. It stays a member, and goes on to
// send messages and to coordinate. While all nodes that can host a kind are drained, it
// is as if none was. Drain returns when the node hosts nothing; with the error of ctx
// when that ends before, which takes nothing back; with [ErrUndrained]; or with [ErrClosed]. It may be
// called again to go on waiting. The node is drained until [System.Undrain], or until the process
// ends. A coordinator of a version that does not know of drained nodes ignores it.
func (s *System) Drain(ctx context.Context) error {
	done, err := s.drains.Order(ctx, s.control.Handle, true)
	if err != nil {
		return s.unanswered(ctx)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		s.drains.Forget(done)
		return context.Cause(ctx)
	case <-s.ended:
		return s.closed()
	}
}

// Undrain has this node host again. It does not wait: shards come when coordinators next
// even out the load. The error is that of ctx, or [ErrClosed].
func (s *System) Undrain(ctx context.Context) error {
	if _, err := s.drains.Order(ctx, s.control.Handle, false); err != nil {
		return s.unanswered(ctx)
	}
	return nil
}

// Move has a shard of a kind move to a node, named by its address or its text form, beside the moves that
// even out the load and whatever those permit. Any node may be asked. It returns when the move has begun, which then
// takes as long as the entities take to stop, and may be called off like any other: [System.ExplainShard] says
// what becomes of it. The allocation strategy may move the shard again when it finds the load
// uneven. The error is a [*MoveError] that says why nothing moves, that of ctx, after which the move may have begun, or
// [ErrClosed].
func (s *System) Move(ctx context.Context, kind string, shard int, to string) error {
	refused := func(why string) error { return &MoveError{Kind: kind, Shard: shard, To: to, Reason: why} }
	if shard < 0 || shard >= protocol.MaxShards {
		return refused("there is no such shard")
	}
	target, err := s.node.View().Find(to)
	if err != nil {
		return refused("no member has that address")
	}
	answer, err := s.ask(ctx, func(id uint64) machine.Input {
		return control.Move{Kind: kind, Shard: protocol.ShardID(shard), To: target.Node, ID: id}
	})
	if answered, ok := answer.(control.MoveAnswered); ok && answered.Refusal != "" {
		return refused(answered.Refusal)
	}
	return err
}

// Reshard has a kind have another number of shards, 1 to 65,536, without stopping anything. Any node may be asked. It
// returns when the change has begun: [System.Kinds] says how far it is, and it comes to its end whatever becomes of
// nodes and coordinators meanwhile. A few shards at a time, as many as sharding.rebalance permits to move, are stopped
// as for a move, and their entities live in the new shards from then on. No message is lost, doubled or overtaken by
// that, and the epochs of an entity grow. The load is not evened out, and no shard of the former number moves, until
// the change is over. The memory of [Snapshotter]s does not come along, and counts as lost.
//
// The number of shards in the files of the nodes should be changed afterwards, one restart at a time:
// while a node of the cluster runs, others may have any number that the kind has had. When all nodes
// have stopped, what counts is their files, which must agree as ever.
//
// Entities of [Kind.Permanent], and those of [Kind.Remember], run in their new shards without a message. The latter are
// taken over by the nodes bit by bit, which goes on when the change is over; no other change begins before that has
// ended.
//
// A kind with [Kind.InUse] or [Kind.OnOldest] has its number for good, and so has each kind of a node with
// [WithLeases]: a part of the cluster that had not heard of the change would get the free leases of former shards. The
// error is a [*ReshardError] that says why no change begins, such as that another one is under way, that of ctx, after
// which the change may have begun, or [ErrClosed].
func (s *System) Reshard(ctx context.Context, kind string, shards int) error {
	refused := func(why string) error { return &ReshardError{Kind: kind, Shards: shards, Reason: why} }
	if shards < 1 || shards > protocol.MaxShards {
		return refused(fmt.Sprintf("a kind has 1 to %d shards", protocol.MaxShards))
	}
	answer, err := s.ask(ctx, func(id uint64) machine.Input {
		return control.Reshard{Kind: kind, Shards: uint32(shards), ID: id}
	})
	if answered, ok := answer.(control.ReshardAnswered); ok && answered.Refusal != "" {
		return refused(answered.Refusal)
	}
	return err
}

// Drained reports whether this node was told to host nothing.
func (s *System) Drained() bool { return s.drains.Drained() }

// Resharding says how far a change of the number of shards of a kind is, as one node knows.
type Resharding struct {
	From    int `json:"from"`    // The number of shards before the change.
	To      int `json:"to"`      // The number of shards when it is over.
	Retired int `json:"retired"` // How many of the former shards are retired: their entities live in the new ones.
}

// ReshardError is the error of [System.Reshard] when no change begins.
type ReshardError struct {
	Kind   string
	Shards int
	Reason string // Why, in words; of a change that is under way, how far it is.
}

// Error names the kind and the number, and says why.
func (e *ReshardError) Error() string {
	return fmt.Sprintf("sharding: %s does not get %d shards: %s", protocol.Clip(e.Kind), e.Shards, e.Reason)
}

// The settings of a running system change ([System.Reload]), and with them which allocation strategy
// is asked ([System.ReloadAllocation]): both hand them to the control machine and to the router of each
// kind ([System.reload]), whose sweeper follows.

// Reload goes on with other settings: the groups rebalance, allocation and passivation, passivate-after, stuck-after
// and remember.recovery-rate. Their fields carry the tag reload:"yes", as does the strategy, which
// [System.ReloadAllocation] changes. Kinds that run take the new values over at once, and moves that are on their way
// go on. The error says that a value is not valid, that any other setting differs from that of [New], or that the
// system has ended; no setting has changed then.
func (s *System) Reload(cfg Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cfg.Allocation.Strategy != s.latest.Allocation.Strategy {
		return fmt.Errorf("sharding: allocation.strategy: %w, or use ReloadAllocation", ErrFixed)
	}
	to, err := s.strategy.Load().With(cfg.Allocation)
	if err != nil {
		return fmt.Errorf("sharding: %w", err)
	}
	return s.reload(cfg, to)
}

// ReloadAllocation is [System.Reload] with another allocation strategy: that of the configuration
// if a is nil, and then it is built in, and otherwise a under the name in the configuration, as with
// [WithAllocation]. The coordinator asks it from its next question on. A question that the strategy
// before has in hand is still answered by it, for 5 s at most, so it must stay usable for as long.
// Nodes may have different strategies for a while: only that of the coordinator is asked.
func (s *System) ReloadAllocation(cfg Config, a allocation.Strategy) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := strategy.Given(cfg.Allocation.Strategy, a)
	if a == nil {
		var err error
		if to, err = strategy.BuiltIn(cfg.Allocation); err != nil {
			return fmt.Errorf("sharding: %w", err)
		}
	}
	return s.reload(cfg, to)
}

// reload goes on with other settings and a strategy. The caller holds mu.
func (s *System) reload(cfg Config, to *strategy.Chosen) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("sharding: %w", err)
	}
	fixed := cfg
	fixed.reload(s.cfg)
	if fixed != s.cfg {
		return fmt.Errorf("sharding: %w", ErrFixed)
	}
	from := s.strategy.Swap(to) // First, so that whoever is asked by the new name is the new one.
	err := s.control.PostWait(s.ctx, control.Reload{
		Allocation: cfg.Allocation, Strategy: to.Name(),
		MaxSimultaneous: cfg.Rebalance.MaxSimultaneous, MaxSimultaneousPerRegion: cfg.Rebalance.MaxSimultaneousPerRegion,
		RebalanceIdle: cfg.Rebalance.IdleCheck, SlowStart: cfg.Rebalance.SlowStart,
	})
	if err != nil {
		s.strategy.Store(from)
		return s.closed()
	}
	s.latest = cfg
	for _, r := range *s.routers.Load() {
		r.reload(cfg)
	}
	return nil
}

// reload takes over from another configuration the settings that may change.
func (c *Config) reload(from Config) {
	c.Rebalance, c.Allocation = from.Rebalance, from.Allocation
	c.PassivateAfter, c.StuckAfter, c.Passivation = from.PassivateAfter, from.StuckAfter, from.Passivation
	c.Remember.RecoveryRate = from.Remember.RecoveryRate
}

// reload gives the cells and the sweeper of a kind the times of another configuration.
func (r *router) reload(cfg Config) {
	passivateAfter := cfg.passivateAfter(r.idleLimit)
	r.region.Reload(passivateAfter, cfg.StuckAfter)
	r.region.Limit(cfg.Passivation.order(r.entityLimit))
	r.region.SetRecoveryRate(cfg.Remember.RecoveryRate)
	select {
	case <-r.intervals: // Drop an interval that the sweeper has not seen yet.
	default:
	}
	r.intervals <- runtime.SweepInterval(passivateAfter, cfg.StuckAfter)
}

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
	// ErrScaleStuck is wrapped by a [*ScaleError] when something did not stop within the handoff timeout: the change
	// was called off, and what had stopped runs again.
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
		return control.SetScale{Kind: kind, ID: id, Base: base, Count: count}
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

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/hosting"
	"github.com/quorate/quorate/sharding/internal/runtime"
)

// entityPatience is how long an entity that sends with its own context waits for room.
// Two entities that send to each other, each with a full mailbox, would wait for ever
// otherwise: neither handles a message while it waits.
const entityPatience = 5 * time.Second

// errEntityPatience is the cause when entityPatience has ended a wait for room.
var errEntityPatience = fmt.Errorf("an entity waits for room for %v at most", entityPatience)

// room is closed when there is room for a message.
type room chan struct{}

// Room wakes the sender that waits.
func (r room) Room() { close(r) }

// await waits until there is room for a message that the cell had no room for.
func (r *router) await(ctx context.Context, sl *runtime.Slot, m *cell.Message, full cell.Admission, room room, a *ask) error {
	var expired <-chan time.Time
	limit := errAskLimit
	switch {
	case a != nil && a.Limited:
		timer := time.NewTimer(a.Deadline.Sub(r.system.clock.Instant()))
		defer timer.Stop()
		expired = timer.C
	case a != nil:
	case hosting.IsEntity(ctx):
		timer := time.NewTimer(entityPatience)
		defer timer.Stop()
		expired, limit = timer.C, errEntityPatience
	}
	var cause error
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-expired:
		cause = limit
	case <-r.verdict.Load().refused:
		cause = r.refusal()
	}
	detail, why := r.whyFull(sl, full)
	return r.notDelivered(m.Entity, detail, severalOf(why, cause))
}

// whyFull says why a message found no room, as far as this node knows.
func (r *router) whyFull(sl *runtime.Slot, full cell.Admission) (detail string, why error) {
	info := sl.Info()
	home, where := info.Home, "here"
	silent := r.unreachable(info)
	switch {
	case home.IsZero():
		return "waited for room: the home of the shard is not known", nil
	case home == r.system.self && !r.system.standing.Held():
		return "waited for room: this node may not host at present", ErrNoStanding
	case home == r.system.self:
	case silent != nil:
		return "waited for room", silent
	default:
		where = "at " + home.String()
	}
	if full == cell.MailboxFull {
		return "waited for room: the mailbox of the entity is full " + where, ErrOverloaded
	}
	return fmt.Sprintf("waited for room: too much is on its way to %s", home), ErrOverloaded
}

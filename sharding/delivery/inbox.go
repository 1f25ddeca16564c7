// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/sharding"
)

// The side of the entity: an [Inbox] is what an entity remembers of deliveries, and [Frame.Handle] handles and
// acknowledges by it. [Entities] applies both to an entity that knows nothing of deliveries.

// The values of an [Inbox] whose fields are zero.
const (
	DefaultWindow   = 50
	DefaultSessions = 100
)

// Inbox is what an entity remembers of deliveries. The zero value has seen none. In the memory of an entity it ends
// with the instance; as a field of a state that package state saves, it has each message change the state once. It is
// not safe for concurrent use: only the entity uses it.
type Inbox struct {
	// Window is how many messages a producer may send at one time, at most [MaxFrame]. Zero:
	// [DefaultWindow]. Below zero: the entity handles none at present, and producers ask again.
	Window int `json:"window,omitempty"`

	// Sessions is how many producers are remembered; the one of which nothing was handled for the
	// longest is forgotten for another. Zero or below: [DefaultSessions].
	Sessions int `json:"sessions,omitempty"`

	// Seen is what was handled, the session that was used last at the end.
	Seen []Seen `json:"seen,omitempty"`
}

// Seen is the last message of a session that was handled.
type Seen struct {
	Session Session `json:"session"`
	Number  uint64  `json:"number"`
}

// last returns the number of the last message of a session that was handled; 0 for none.
func (in *Inbox) last(s Session) uint64 {
	if i := in.find(s); i >= 0 {
		return in.Seen[i].Number
	}
	return 0
}

func (in *Inbox) find(s Session) int {
	return slices.IndexFunc(in.Seen, func(seen Seen) bool { return seen.Session == s })
}

// note remembers that a message was handled.
func (in *Inbox) note(s Session, number uint64) {
	sessions := in.Sessions
	if sessions <= 0 {
		sessions = DefaultSessions
	}
	if i := in.find(s); i >= 0 {
		in.Seen = slices.Delete(in.Seen, i, i+1)
	}
	if over := len(in.Seen) - sessions + 1; over > 0 {
		in.Seen = slices.Delete(in.Seen, 0, over)
	}
	in.Seen = append(in.Seen, Seen{s, number})
}

// demand returns how many messages the inbox takes at one time.
func (in *Inbox) demand() int {
	if in.Window == 0 {
		return DefaultWindow
	}
	return min(max(in.Window, 0), MaxFrame)
}

// Replier is the context of a message: [sharding.Context], or that of package state.
type Replier interface{ Reply(message any) error }

// Handle calls handle for the messages of a frame that the inbox has not seen, in their order and within its window,
// and acknowledges them. An error of handle ends that, and is returned. The entity has to return it from Receive: then
// nothing of the frame is acknowledged, and the whole frame is delivered again. That is so after a
// [sharding.RefusalError] too, which reaches no caller; the entity keeps running then, with the messages before in its
// memory, and with none of the frame in a state that is saved. Handle must not reply to a delivery, since its producer
// waits for the acknowledgement only; the message of a [Plain] frame may be answered.
func (f *Frame[M]) Handle(c Replier, in *Inbox, handle func(message M) error) error {
	if f.plain() {
		for _, i := range f.items {
			if err := handle(i.message); err != nil {
				return err
			}
		}
		return nil
	}
	last, room, confirmed := in.last(f.session), in.demand(), uint64(0)
	for _, i := range f.items {
		if i.number > last {
			if room == 0 {
				break
			}
			room--
			if err := handle(i.message); err != nil {
				if _, refused := errors.AsType[*sharding.RefusalError](err); refused {
					err = fmt.Errorf("delivery: message %d of session %x is not acknowledged, and comes again: %w", i.number, f.session, sharding.Refuse(nil))
				}
				return err
			}
			in.note(f.session, i.number)
		}
		confirmed = i.number
	}
	if err := c.Reply(&Ack{session: f.session, confirmed: confirmed, demand: in.demand()}); err != nil {
		return fmt.Errorf("delivery: a delivered message cannot be answered, its producer waits for the acknowledgement alone: %w", err)
	}
	return nil
}

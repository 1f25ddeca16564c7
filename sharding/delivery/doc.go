// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package delivery delivers messages to entities at least once: a producer keeps each message until the
// entity has handled it, and sends it again when the entity, its node or the way to it fails.
//
//	accounts, err := sharding.Start(node, sharding.Kind[*delivery.Frame[*pb.Command]]{
//		Name:  "account",
//		Codec: delivery.Codec[*pb.Command](nil),
//		New:   delivery.Entities(delivery.Inbox{}, func(*sharding.Context) sharding.Entity[*pb.Command] { return new(Account) }),
//	})
//	producer, err := delivery.NewProducer(ctx, accounts, delivery.Default())
//	defer producer.Close()
//	err = producer.Send(ctx, "acct-42", command)     // accepted: it will be handled
//	err = producer.Deliver(ctx, "acct-43", command)  // handled
//
// A node has one producer or several for a kind, each of which goroutines and entities of the node may share. Other
// messages are sent to such an entity by Tell and Ask as before, in frames that [Plain] makes.
//
// # Life of a message
//
//	Send ─> (queue) ─> held ─> in a frame ──> the entity handles it ──> acknowledged: forgotten
//	         room?      ^          │ no answer in time, an error, nonsense
//	                    └─ pause <─┘ RetryMin, doubling up to RetryMax, a part of it left out at random
//
// One frame is under way to an entity at one time. It has as many messages as the
// entity has allowed with its last answer ([Inbox.Window]); one at the beginning and after a failure. An entity that
// allows none is asked again after a pause.
//
// Jobs that any of some workers may do are given to a [Pool], with which workers pull.
//
// # Guarantees
//
//   - A message that was accepted is delivered until the entity has handled it: Receive has returned nil. That takes a
//     producer that runs: with a [Queue], the next producer with the same queue goes on.
//   - An instance of an entity handles the messages of a producer once, and in the order in which one goroutine has
//     sent them. After the producer has restarted with its queue, what was in the queue comes first.
//   - A message that an entity does not confirm delays the further messages to this entity, and no others, as long as
//     Messages, Bytes and Calls leave room beside what PerEntity permits a few such entities.
//   - Memory is bounded: when a producer holds as much as it may, Send waits; if its context ends, the error is
//     [ErrFull]. An entity remembers [Inbox.Sessions] producers, 24 bytes each.
//
// # After a restart of an entity
//
// An entity that was started anew, because it failed, was passive, or lost its node, has an empty inbox; one whose
// shard moves in order takes it along, see [sharding.Snapshotter]. With an empty inbox it handles again what was not
// acknowledged: the whole frame that was under way, or that it failed at, also the messages that it had handled
// already. Then all that follows. A frame of before that comes late, which takes an entity that began anew within
// [Config.Timeout] after it was sent, is handled again after later ones.
//
// Effectively once is the inbox as a part of the state that package state saves:
//
//	type Account struct {
//		Cents int64
//		Inbox delivery.Inbox
//	}
//
//	New: state.Snapshots(keeper, state.JSON[Account](),
//		func(c *state.Context[Account], f *delivery.Frame[*pb.Command]) error {
//			return f.Handle(c, &c.State().Inbox, func(m *pb.Command) error {
//				c.State().Cents += m.GetCents()
//				return nil
//			})
//		}),
//
// The state, with the numbers of the messages that have changed it, is saved once for each frame, and the
// acknowledgement is sent after that. So each message changes the state once, whatever happens to entity and producer,
// with two limits: a program that sends the same thing twice, as after an error of Deliver, has sent two messages; and
// the entity forgets a producer when messages of [Inbox.Sessions] other ones have come since.
//
// # Non-guarantees
//
//   - Without a queue, what is not confirmed when the producer or its process ends may be lost.
//   - Messages of several goroutines, or of several producers, have no order between them.
//   - A message at which the entity always fails is delivered for ever, and delays those that follow it to this entity.
//     The log says so. To go on, the entity has to handle it: it notes the message, and returns nil.
//   - The acknowledgement is no reply: an entity answers a command by a message of its own, or is asked by a plain
//     frame.
//
// # Concurrency
//
// Producers are safe for concurrent use. Each has one goroutine, and one for each frame under way; Close ends
// them, and so does the end of the node. Inboxes and frames belong to the entity that handles them.
package delivery

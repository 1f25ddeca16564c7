// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package pubsub has topics over a cluster: what one node publishes reaches the subscribers
// on all nodes, at most once.
//
// # Life cycle
//
// [New] puts topics on a node with distributed data, once for each node; they end with the
// node. [NewTopic] gives a topic of a type, with a codec that all nodes share. Everybody may
// publish to it ([Topic.Publish]), subscribe to it ([Topic.Subscribe]), or subscribe in a
// group ([Topic.SubscribeGroup]), of which one subscriber gets each message, in turn.
//
// Which nodes have subscribers of a topic is in the distributed data, under the key "pubsub/"
// with the name of the topic behind it. A message goes once to each of these nodes and is
// handed to the subscribers there. Publishers on the node of a subscriber know of it when
// Subscribe returns; those on other nodes within moments (ddata.spread-interval and
// ddata.notify-interval). Nodes that are downed or no members get nothing.
//
// # Guarantees
//
// A message is delivered at most once, or not at all: a node or a connection may fail. The
// messages that one goroutine publishes to a topic reach each subscriber in order. To one
// group they are given in turn, so that they may be handled in another order. There is no
// order between topics, or between publishers.
//
// A subscriber has room for some messages ([WithRoom]); what it has begun to read makes room
// for as many more. When there is none, its [Policy] decides:
//
//	Block       the publisher waits, as long as its context lasts
//	Fail        Publish returns an error
//	DropNewest  the message is dropped
//	DropOldest  the message that has waited longest is dropped
//
// Another node learns that a subscriber has no room by a word that is sent back, and asks
// again after a second. A subscriber that blocks takes up to 16 MiB of what was on its way
// meanwhile, before messages are dropped; one that fails drops what was on its way.
// Nothing of that delays other topics or other traffic. A publisher whose connection to a
// node is full does what [WithOverflow] says.
//
// Whatever is dropped is counted, by reason, in [Stats] and in the metrics, and logged at
// most once a minute; [Subscription.Dropped] counts for one subscriber. What was given to a
// connection that broke for good is counted by the transport as lost. Messages published
// without a subscriber are counted as unheard.
//
// # Limits
//
// Names of topics and groups have 1 to 255 bytes of UTF-8. A message has at most what a frame
// between nodes takes, see [WithMaxMessageBytes]; a larger one is refused with [ErrTooLarge].
// On nodes that do not hold the data of a topic, changes of subscribers are known within a
// second. A topic that had subscribers once costs an empty map when nobody subscribes any
// more. What has to arrive belongs into entities or into the data.
package pubsub

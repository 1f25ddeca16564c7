// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/quorate/quorate/machine/wire"

// What two releases can be to each other: [Spared] are the fields that one of them may lack, required says of all
// others why not. What a later release adds to a record that is passed on is kept by this one, see doc.go.

// Spared returns the fields without which a member does what the others expect of it. So a world may have members
// without one of them.
func Spared() []wire.SparedField {
	return []wire.SparedField{
		wire.Spared("InitJoinNack.reason", wire.Path{3, 2}),
		wire.Spared("Welcome.warnings", wire.Path{5, 3}),
		wire.Spared("JoinRefused.reason", wire.Path{6, 4}),
		wire.Spared("JoinRefused.differences", wire.Path{6, 5}),
		wire.Spared("Heartbeat.fingerprint", wire.Path{7, 2}),
		wire.Spared("Heartbeat.shared", wire.Path{7, 3}),
		wire.Spared("HeartbeatReply.question", wire.Path{8, 4}),
		wire.Spared("HeartbeatReply.fingerprint", wire.Path{8, 5}),
		wire.Spared("NotMember.downed_why", wire.Path{13, 4}),
		wire.Spared("DowningAnswer.reason", wire.Path{15, 5}),
		wire.Spared("Vote.reason", wire.Path{17, 3}),
	}
}

// required says of each message why its fields, but for those of [Spared], are in every release. A field that is added
// to it later, and that a member cannot do without, is used when all members speak the version of the protocol that has
// it.
func required() map[string]string {
	const (
		question = "an answer is found by its question, and says yes or no"
		clusters = "it decides which cluster is founded, joined or yielded to"
		columns  = "a column has a value for each record: a member that lacks it would pass on other records under the same clock"
		versions = "it says what the receiver has and lacks"
		whole    = "it names nodes, or a cluster, and is compared as a whole"
	)
	return map[string]string{
		"Message": "it says of which type a message is: new types are sent to members that speak the version which has them",

		"InitJoin": question, "InitJoinAck": question, "InitJoinNack": question, "JoinRequest": question, "Welcome": question,
		"JoinRefused": question, "Heartbeat": question, "HeartbeatReply": question, "AskStanding": question, "GiveStanding": question,
		"LendStanding": question, "AskDowning": question, "DowningAnswer": question,

		"Claim": clusters, "Record": clusters, "Yield": clusters, "Stamp": clusters, "AskVote": clusters, "Vote": clusters,

		"GossipStatus": versions, "GossipDelta": versions, "GossipState": versions, "State": versions, "Digest": versions, "Delta": versions,
		"Clock": versions, "ClockRef": versions, "Edits": versions,

		"Records": columns, "Members": columns, "Profiles": columns, "Tombstones": columns, "Observers": columns, "Causes": columns,
		"Settings": columns, "Differences": columns,

		"Config": "it says who votes: two members that count other voters may both go on", "Registers": "they are the same in all members",
		"Downing": "it says by what all members decide", "DowningStrategy": "it says by what all members decide",
		"More": "the version orders the copies of a record, whatever else they have",

		"Reached": "it is the message", "NotMember": "it names whom the receiver may be, and why stands beside by whom",
		"ExitingConfirmed": "it has no fields", "ClusterId": whole, "Node": whole, "Nodes": whole,
	}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/component"
)

// The messages stand in the order of a node's life: looking for a cluster, joining,
// monitoring, gossip, leaving, downing. The settings that nodes compare and the reasons
// of refusals follow.

// Service is the number under which the messages of this package travel. All of
// them take the control lane.
const Service = component.ServiceMembership

// Limits of what a message may hold. A codec refuses what is above them before
// it allocates, and the machine never sends it.
const (
	// MaxSettings is the largest number of settings in a [JoinRequest] and of
	// differences in a [JoinRefused] or a [Welcome].
	MaxSettings = 256
	// MaxKeyBytes is the longest key of a setting, in bytes.
	MaxKeyBytes = 128
	// MaxTextBytes is the longest value of a setting and the longest reason, in
	// bytes. A longer reason is cut by the sender.
	MaxTextBytes = 1024
	// MaxReached is the largest number of nodes in a [Reached]. Further nodes are
	// reported when the first ones are up.
	MaxReached = 1024
)

// InitJoin asks a seed node whether it is a member of a cluster that can be
// joined. It is sent to an address, before the identity of the node there is
// known, and repeated with back-off until somebody answers.
type InitJoin struct {
	// Attempt numbers the sender's attempts to join. The answer repeats it, so
	// that an answer to an earlier attempt is told from one to this.
	Attempt uint64
	Claim   Claim
	// Back says that the sender was asked by the receiver, and asks back. It is not asked
	// back for that.
	Back bool
}

// AskVote asks for a vote: the sender wants to found a cluster.
type AskVote struct {
	// Birth is the birth of the cluster that would be founded. A node votes once, for a
	// birth above all births that it has voted for.
	Birth int64
	// Basis is the stamp of the voters whose majority is needed; Settled says that the
	// change to these voters is known to have converged.
	Basis   Stamp
	Settled bool
	// Claim is what the sender says of itself.
	Claim Claim
}

// Vote answers [AskVote].
type Vote struct {
	Birth   int64
	Granted bool
	// Reason says why the vote is not given, at most [MaxTextBytes].
	Reason string
}

// InitJoinAck answers [InitJoin]: the sender is a member and takes joins.
type InitJoinAck struct {
	Attempt uint64
	// Cluster is the cluster of which the sender is a member.
	Cluster gossip.ClusterID
	Claim   Claim
}

// InitJoinNack answers [InitJoin]: the sender cannot be joined now.
type InitJoinNack struct {
	Attempt uint64
	// Member says that the sender is a member of a cluster all the same, so that
	// the receiver must not form another.
	Member bool
	// Reason says why in a few words, at most [MaxTextBytes].
	Reason string
	Claim  Claim
}

// JoinRequest asks a member to record the sender as joining. It is repeated
// until it is answered by [Welcome] or [JoinRefused].
type JoinRequest struct {
	Attempt uint64
	// Member describes the sender. Its node must be the sender itself, and its status
	// [gossip.Joining].
	Member gossip.Member
	// Cluster is the cluster that the sender expects to join, as told by [InitJoinAck];
	// zero if it expects none in particular.
	Cluster gossip.ClusterID
	// Settings are the sender's settings that are compared, at most [MaxSettings], sorted
	// by key.
	Settings []Setting
	// Claim is what the sender says of itself.
	Claim Claim
}

// Welcome answers [JoinRequest]: the sender has recorded the receiver as
// joining. It is sent again for each repeated request of a member.
type Welcome struct {
	Attempt uint64
	// State is the sender's state, in which the receiver is a member.
	State *gossip.State
	// Warnings are the settings that should be equal and are not.
	Warnings []Difference
}

// JoinRefused answers [JoinRequest]: the sender does not record the receiver.
type JoinRefused struct {
	Attempt uint64
	// Refusal is the reason for programs. A refusal that the receiver does not know is
	// treated as final.
	Refusal Refusal
	// Retry says that the cause passes: the receiver asks again later.
	Retry bool
	// Reason says why, for people, at most [MaxTextBytes].
	Reason string
	// Differences are the settings that must be equal and are not.
	Differences []Difference
}

// Heartbeat asks a node for a sign of life. One is sent each heartbeat interval
// to each monitored node.
type Heartbeat struct {
	// Sequence is the number of the sender's round, from 1.
	Sequence uint64
	// Fingerprint is that of the sender's state in one heartbeat of a round, in place of a
	// [GossipStatus] of its own; otherwise 0. It says that the states differ, or that they do
	// not. A receiver whose state differs sends its digest.
	Fingerprint gossip.Hash
	// Shared says that the sender answers a question that comes with the answer. A receiver
	// that monitors the sender then need send no heartbeat of its own.
	Shared bool
}

// Question is a heartbeat that goes with the answer to one.
type Question struct {
	// Sequence and Fingerprint mean what they mean in a [Heartbeat]; without a sequence
	// there is no question.
	Sequence    uint64
	Fingerprint gossip.Hash
}

// HeartbeatReply answers [Heartbeat].
type HeartbeatReply struct {
	// Sequence repeats the sequence of the heartbeat. The receiver looks up by its own
	// clock when it sent that heartbeat: no clock reading crosses the network.
	Sequence uint64
	// Known says that the receiver is a member and not down in the state of the sender,
	// and that the sender holds no unreachable record of its own about the receiver. It
	// is false in a late second answer to the same heartbeat, which gives standing: that
	// such an answer arrives says nothing new about the connection.
	Known bool
	// Standing says besides that the receiver is a voter in every set of the base of the
	// sender, or is no voter and was up in a state that all members had seen. Then the
	// answer counts for the receiver's standing.
	Standing bool
	// Question is what the sender asks in its turn, in the answer to a heartbeat that says
	// Shared.
	Question Question
}

// AskStanding asks a member for its word, for the standing of the sender and of those to
// whom the sender lends it. Unlike a heartbeat it accuses nobody: silence means nothing.
// It is sent each heartbeat interval, see [GiveStanding].
type AskStanding struct {
	// Sequence is the number of the sender's round of questions, from 1.
	Sequence uint64
}

// GiveStanding answers [AskStanding], and asks in its turn.
type GiveStanding struct {
	// Sequence repeats the sequence of the question.
	Sequence uint64
	// Known and Standing mean what they mean in a [HeartbeatReply].
	Known, Standing bool
	// Question is the number of the sender's own question: how old is the receiver's
	// proof of a majority?
	Question uint64
}

// LendStanding answers the question in a [GiveStanding]: the sender has proved, by the
// answers of the voters themselves, that a majority knows it.
type LendStanding struct {
	// Question repeats the number of the question. The receiver looks up by its own clock
	// when it asked, and takes the ages from that.
	Question uint64
	// Standing says that the proof counts for the standing of the receiver. Otherwise it
	// only shows the receiver that it is in contact with a majority.
	Standing bool
	// Proof is how old the proof of a majority was when the sender answered, by the
	// sender's clock; [NoProof] if it has none. The wire carries full milliseconds,
	// rounded up.
	Proof time.Duration
	// All is how old the oldest of the last answers was, over all voters that are not
	// down; [NoProof] if there is none, or where nobody needs it.
	All time.Duration
}

// NoProof is the age of a proof that does not exist.
const NoProof time.Duration = -1

// GossipStatus says how much the sender knows, by a digest of its state. A receiver that
// knows more answers with the difference, one that knows less with its own status.
type GossipStatus struct{ Digest gossip.Digest }

// GossipDelta is the difference between the sender's state and what it believes
// the receiver to know.
type GossipDelta struct {
	Delta gossip.Delta
	// Digest is the digest of the sender's whole state, so that the receiver learns what
	// the sender knows even if it cannot apply the difference.
	Digest gossip.Digest
}

// GossipState is the whole state of the sender. It is sent where a difference
// cannot be built or was not understood.
type GossipState struct{ State *gossip.State }

// ExitingConfirmed tells the leader that the sender, which is leaving, hosts
// nothing any more and never will again in this incarnation. It is repeated
// until the sender's status shows that it arrived.
type ExitingConfirmed struct{}

// Reached tells the leader which newcomers have answered a heartbeat of the sender, a
// voter. It is sent when there is a new one, and with each round of heartbeats while
// there are any. Each message replaces the one before.
type Reached struct {
	// Nodes are the uids of the newcomers, at most [MaxReached].
	Nodes []gossip.UID
}

// NotMember tells its receiver that it is no member any more in the state of
// the sender: it was downed, or it was removed. The receiver stops. It is the
// answer to whatever such a node still sends, since nobody gossips to it.
type NotMember struct {
	// Node is the incarnation that is no member. A receiver with another uid ignores the
	// message.
	Node gossip.NodeID
	// Status is [gossip.Down], [gossip.Removed], or [gossip.StatusNone] for a node of
	// which the sender has never heard. In the last case the news may still be under way;
	// the receiver takes it seriously only when it lasts.
	Status gossip.Status
	// Downed says by whom and why the receiver was declared down, if the sender knows.
	Downed gossip.Cause
}

// AskDowning asks a member of the sender's side for a downing decision. The sender is the
// leader of the side, and its own strategy cannot answer.
type AskDowning struct {
	// Question numbers the sender's questions. The answer repeats it.
	Question uint64
	// Strategy names the strategy that is to decide.
	Strategy gossip.StrategyID
	// View is a hash of the view that is to be decided about. A receiver with another
	// view does not decide.
	View uint64
}

// DowningAnswer answers [AskDowning].
type DowningAnswer struct {
	Question uint64
	// Decision is the decision of the receiver's strategy, from the receiver's view.
	Decision downing.Decision
	// Error says why there is no decision, at most [MaxTextBytes]; "" if there is one.
	Error string
}

// SettingClass says what a difference in a setting means.
type SettingClass uint8

// The classes of settings.
const (
	// MustEqual settings decide about safety: a node with another value is
	// refused.
	MustEqual SettingClass = iota + 1
	// ShouldEqual settings decide about speed or comfort: a node with another
	// value joins, and both sides are warned.
	ShouldEqual
)

// Setting is one compared setting of a node.
type Setting struct {
	// Key is the key of the setting as in a configuration file, at most
	// [MaxKeyBytes].
	Key string
	// Value is the value of the setting in canonical text, at most [MaxTextBytes].
	Value string
	Class SettingClass
}

// Difference is a setting that two nodes have with different values.
type Difference struct {
	Key string
	// Member is the value of the node that is asked to let the other join. An absent
	// setting has the value "".
	Member string
	// Joiner is the value of the node that asks.
	Joiner string
}

// Refusal is the reason of a refusal, for programs. Values are part of the wire
// and never reused.
type Refusal uint8

// The refusals.
const (
	// RefusedNotReady: the node asked is not a member itself, or is on its way
	// out.
	RefusedNotReady Refusal = iota + 1
	// RefusedMalformed: the message contradicts itself or its sender.
	RefusedMalformed
	// RefusedCluster: the message belongs to another cluster.
	RefusedCluster
	// RefusedSettings: a setting that must be equal is not.
	RefusedSettings
	// RefusedIncarnation: this incarnation of the node was downed or removed
	// and can never be a member again. A restart gives it a new one.
	RefusedIncarnation
	// RefusedPredecessor: an earlier incarnation at the same address is still a member.
	// It has been downed; when it is removed the joiner is let in.
	RefusedPredecessor
	// RefusedDialBack: the address that the joiner gave could not be dialled,
	// or another node answered there.
	RefusedDialBack
	// RefusedBusy: too many nodes are joining through the node asked.
	RefusedBusy
	// RefusedNotMember: the sender is not a member.
	RefusedNotMember
	// RefusedUnsolicited: an answer to a question that was not asked, or not in this
	// attempt.
	RefusedUnsolicited
	// RefusedUnknown: the message or command is of no known type, or about a
	// node that is not known.
	RefusedUnknown
	// RefusedByPeer: the peer's transport refuses this node.
	RefusedByPeer
	// RefusedLinks: the node at this address was downed because links to it were
	// broken, and is kept out for a time.
	RefusedLinks

	// RefusedUnrelated: the joiner has to do with another cluster of this name, by its list
	// and by what it remembers.
	RefusedUnrelated

	// RefusedAnswer: the answer of a strategy breaks its contract.
	RefusedAnswer

	// RefusalLast is the refusal with the highest value.
	RefusalLast = RefusedAnswer
)

// String returns the name of the refusal.
func (r Refusal) String() string {
	names := [...]string{
		"none", "not-ready", "malformed", "other-cluster", "settings-differ", "incarnation-gone",
		"predecessor-present", "dial-back-failed", "busy", "not-a-member", "unsolicited", "unknown", "refused-by-peer",
		"links-broken", "unrelated", "answer",
	}
	if int(r) < len(names) {
		return names[r]
	}
	return "unnamed"
}

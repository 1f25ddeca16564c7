// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/quorate/quorate/machine/optional"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/remember"
)

// What a program says of a kind: Kind with all that can be set, OnFailure, the settings that all nodes must share, and
// the faults that a description can have.

// Kind describes one kind of entity that handles messages of type C. All nodes of a cluster must describe a kind alike.
// A node whose Shards, Codec or Role differ, or that hosts by another rule (OnOldest, InUse, [WithLeases]), is refused
// by the coordinator with [SettingsError]; the other fields nobody compares.
type Kind[C any] struct {
	// Name names the kind in the cluster: 1 to 128 bytes.
	Name string

	// New returns the entity of c.ID(), which is then started. It must not
	// block. It may be nil with ProxyOnly.
	New func(c *Context) Entity[C]

	// ProxyOnly says that this node sends to the entities and hosts none. Nodes
	// may differ in ProxyOnly.
	ProxyOnly bool

	// Role limits the hosting and the coordinating of the kind to nodes with this
	// role. Empty: all nodes. A node without the role can send.
	Role string

	// Shards is the number of shards, at most 65,536; ten times the largest
	// number of nodes is a good choice. Zero: the configured number. In a cluster that runs the
	// number is changed by [System.Reshard], and here only while no node runs the kind, or after that.
	Shards int

	// Codec encodes messages for other nodes. Nil: [Protobuf], and C must then
	// be a pointer to a generated message.
	Codec Codec

	// OnFailure says what becomes of an entity that failed. The default is [Restart].
	OnFailure OnFailure

	// PassivateAfter is the time without a message after which an entity is
	// stopped. Zero: the configured time. Negative: never.
	PassivateAfter time.Duration

	// EntityLimit is how many entities of the kind a node has in memory, in place of
	// sharding.passivation.active-entity-limit; entities beyond it give way to others, by the
	// policy that is configured. Zero: the configured limit. Negative: none.
	EntityLimit int

	// Remember has the entities of the kind remembered by a store: one to which a message came is started again, without a
	// message, wherever its shard lives next, after a crash, a move or a restart of the whole cluster, and after a failure
	// or a stop of its own, as with Permanent. It is forgotten when it has stopped because it asked for that
	// ([Context.Passivate]) and no message came meanwhile, unless its shard was moving ([StopReason] says so): then it
	// comes back, and may ask again. Such entities are not stopped for being idle, nor to make room, whatever is
	// configured; PassivateAfter and EntityLimit must not be above 0. Nil: none is remembered. Nodes that host the kind
	// need stores over the same ids. See package remember.
	Remember remember.Store

	// RememberFirst has the first message to an entity wait until the store has the entity, at most for
	// sharding.remember.first-limit and one call of the store; after that it fails with [ErrEntityFailed]. Otherwise
	// the entity begins at once, and one whose node is lost before the store has it, some milliseconds
	// later mostly, comes back with its next message only.
	RememberFirst bool

	// Permanent are the ids of entities that run without a message, on whatever node hosts their
	// shard: each is started with its shard, is not stopped for being idle, and is started
	// again when it has stopped or failed, after a rest as with [Restart] whatever OnFailure
	// says. For few of them: each node looks through the list. Nodes that host the kind should
	// have the same list.
	Permanent []string

	// OnOldest has the oldest node that can host the kind host all of it, and no other node
	// anything: the next oldest when that node leaves, is drained or is gone. The kind does not go
	// back to a node that is older. The allocation strategy is
	// not asked. Package sharding/singleton uses it.
	OnOldest bool

	// InUse is how many of the first shards are in use at first: only they live anywhere, and [Rescale] changes how many
	// they are while the kind runs. What the cluster has said counts, not what a node was configured with later.
	// What is sent to an entity of another shard waits. Package sharding/singleton/daemon uses it. Zero: all are, for
	// ever.
	InUse int

	// HandoffTimeout is how long a shard of the kind may take to stop before OnStuck says how its move
	// goes on. Zero: the configured time. Equal on all nodes, also on those that only send.
	HandoffTimeout time.Duration

	// OnStuck says what becomes of a move when entities of the shard do not stop within HandoffTimeout. Equal on
	// all nodes, also on those that only send. Empty: as sharding.on-stuck says.
	OnStuck OnStuck
}

// OnePerShard returns n ids, each of which is the only one of them in its shard, in a kind with n shards: id i is in
// shard i. Entities that are permanent with these ids ([Kind.Permanent]) are spread over the nodes as the shards are.
// An id is the decimal number i, alone or followed by a slash and more digits. The ids depend on n alone, and are the
// same in all releases. It panics if n is negative.
func OnePerShard(n int) []string {
	all := make([]string, n)
	for i := range all {
		number := strconv.Itoa(i)
		all[i] = number
		for more := 1; protocol.HashOf(all[i])%uint64(n) != uint64(i); more++ {
			all[i] = number + "/" + strconv.Itoa(more)
		}
	}
	return all
}

// OnStuck says what becomes of a move whose shard does not stop in time, because an entity of it does not return.
type OnStuck string

const (
	// OnStuckAbort takes the stop back: the shard stays where it is, and the move is tried again later.
	OnStuckAbort OnStuck = "abort"
	// OnStuckAbandon gives the entities up: their contexts have ended, what they still answer is discarded, they never
	// begin another message, and the shard moves. Until such an entity returns, its code runs beside that of its
	// successor, and nothing but the epoch tells the two apart.
	OnStuckAbandon OnStuck = "abandon"
)

// OnFailure says what becomes of an entity whose Receive, or a timer of it,
// returned an error or panicked. The instance is stopped in any case.
type OnFailure uint8

const (
	// Restart has a new instance handle, at once, the messages that wait and those that
	// come. An entity that fails again before it has handled a message rests first, from
	// sharding.entity-restart-backoff up to thirty times that, and its messages
	// fail meanwhile.
	Restart = OnFailure(cell.Restart)
	// StopOnFailure has the messages that wait fail with [ErrEntityFailed]; the next
	// message starts a new instance.
	StopOnFailure = OnFailure(cell.StopOnFailure)
)

// settings returns the settings of the kind that must be equal on all nodes.
func (k Kind[C]) settings(cfg Config) control.Settings {
	shards := k.Shards
	if shards == 0 {
		shards = cfg.NumberOfShards
	}
	return control.Settings{
		Shards: uint32(min(max(shards, 0), protocol.MaxShards+1)), // A number out of range stays out of range, and is refused by validate.
		Hash:   protocol.HashName, Codec: k.codec().Name(), Role: k.Role,
	}
}

// codec returns the codec of the kind: [Protobuf] when none is given.
func (k Kind[C]) codec() Codec {
	if k.Codec == nil {
		return Protobuf{}
	}
	return k.Codec
}

// validate reports every fault of the kind's description.
func (k Kind[C]) validate(cfg control.KindConfig) error {
	var faults []error
	if k.Shards < 0 || k.Shards > protocol.MaxShards {
		faults = append(faults, fmt.Errorf("sharding: kind %q: number of shards %d, want 1 to %d", k.Name, k.Shards, protocol.MaxShards))
		cfg.Settings.Shards = protocol.MaxShards // The settings cannot hold the number that was asked for, and it has been named.
	}
	if err := cfg.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("sharding: %w", err))
	}
	if k.New == nil && !k.ProxyOnly {
		faults = append(faults, fmt.Errorf("sharding: kind %q: New must be set unless ProxyOnly is", k.Name))
	}
	for i, id := range k.Permanent {
		if fault := protocol.EntityFault(id); fault != "" {
			faults = append(faults, fmt.Errorf("sharding: kind %q: Permanent[%d]: %s", k.Name, i, fault))
		}
		if slices.Contains(k.Permanent[:i], id) {
			faults = append(faults, fmt.Errorf("sharding: kind %q: Permanent[%d]: %q is listed twice", k.Name, i, protocol.Clip(id)))
		}
	}
	faults = append(faults, k.rememberFaults()...)
	if k.EntityLimit > maxEntities {
		faults = append(faults, fmt.Errorf("sharding: kind %q: EntityLimit %d is above %d", k.Name, k.EntityLimit, maxEntities))
	}
	if k.InUse < 0 {
		faults = append(faults, fmt.Errorf("sharding: kind %q: InUse %d is negative", k.Name, k.InUse))
	}
	if k.HandoffTimeout < 0 {
		faults = append(faults, fmt.Errorf("sharding: kind %q: HandoffTimeout %v is negative", k.Name, k.HandoffTimeout))
	}
	if _, known := stuckPolicy(string(k.OnStuck)); k.OnStuck != "" && !known {
		faults = append(faults, fmt.Errorf("sharding: kind %q: OnStuck: %q is neither abort nor abandon", k.Name, protocol.Clip(string(k.OnStuck))))
	}
	if k.OnFailure > StopOnFailure {
		faults = append(faults, fmt.Errorf("sharding: kind %q: OnFailure is %d, which means nothing", k.Name, k.OnFailure))
	}
	if t := reflect.TypeFor[C](); t.Kind() != reflect.Pointer {
		faults = append(faults, fmt.Errorf("sharding: kind %q: messages must be pointers, not %s", k.Name, t))
	} else if err := optional.Check(k.codec(), reflect.TypeFor[Codec](), reflect.TypeFor[MethodCodec]()); err != nil {
		faults = append(faults, fmt.Errorf("sharding: kind %q: codec: %w", k.Name, err))
	} else if err := k.codec().Check(reflect.New(t.Elem()).Interface()); err != nil {
		faults = append(faults, fmt.Errorf("sharding: kind %q: %w", k.Name, err))
	}
	return errors.Join(faults...)
}

// rememberFaults reports what contradicts that entities are remembered.
func (k Kind[C]) rememberFaults() (faults []error) {
	refuse := func(when bool, what string) {
		if when {
			faults = append(faults, fmt.Errorf("sharding: kind %q: %s", k.Name, what))
		}
	}
	refuse(k.Remember == nil && k.RememberFirst, "RememberFirst needs Remember")
	refuse(k.Remember != nil && k.PassivateAfter > 0, "PassivateAfter contradicts Remember: entities that are remembered are not stopped for being idle")
	refuse(k.Remember != nil && k.EntityLimit > 0, "EntityLimit contradicts Remember: entities that are remembered are not stopped to make room")
	return faults
}

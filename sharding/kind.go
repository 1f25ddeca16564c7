// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Kind describes one kind of entity that handles messages of type C. All nodes
// of a cluster must describe a kind alike; a node that does not is refused by
// the coordinator with [SettingsError].
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
	// number of nodes is a good choice. Zero: the configured number. The number can
	// be changed only while no node runs the kind.
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

	// Permanent are the ids of entities that run without a message, on whatever node hosts their
	// shard: each is started with its shard, is not stopped for being idle, and is started
	// again when it has stopped or failed, after a rest as with [Restart] whatever OnFailure
	// says. For few of them: each node looks through the list. Nodes that host the kind should
	// have the same list.
	Permanent []string

	// OnOldest has the oldest node that can host the kind host all of it, and no other node
	// anything: the next oldest when that node leaves, is drained or is gone. The kind does not go
	// back to a node that is older. The allocation strategy is
	// not asked. Package singleton uses it.
	OnOldest bool

	// HandoffTimeout is how long a shard of the kind may take to stop before its move is called
	// off. Zero: the configured time.
	HandoffTimeout time.Duration
}

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
	if err := cfg.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("sharding: %w", err))
	}
	if k.New == nil && !k.ProxyOnly {
		faults = append(faults, fmt.Errorf("sharding: kind %q: New must be set unless ProxyOnly is", k.Name))
	}
	for i, id := range k.Permanent {
		if fault := faultOf(id); fault != "" {
			faults = append(faults, fmt.Errorf("sharding: kind %q: Permanent[%d]: %s", k.Name, i, fault))
		}
		if slices.Contains(k.Permanent[:i], id) {
			faults = append(faults, fmt.Errorf("sharding: kind %q: Permanent[%d]: %q is listed twice", k.Name, i, clip(id)))
		}
	}
	if k.EntityLimit > entityLimitMax {
		faults = append(faults, fmt.Errorf("sharding: kind %q: EntityLimit %d is above %d", k.Name, k.EntityLimit, entityLimitMax))
	}
	if k.HandoffTimeout < 0 {
		faults = append(faults, fmt.Errorf("sharding: kind %q: HandoffTimeout %v is negative", k.Name, k.HandoffTimeout))
	}
	if k.OnFailure > StopOnFailure {
		faults = append(faults, fmt.Errorf("sharding: kind %q: OnFailure is %d, which means nothing", k.Name, k.OnFailure))
	}
	if t := reflect.TypeFor[C](); t.Kind() != reflect.Pointer {
		faults = append(faults, fmt.Errorf("sharding: kind %q: messages must be pointers, not %s", k.Name, t))
	} else if err := k.codec().Check(reflect.New(t.Elem()).Interface()); err != nil {
		faults = append(faults, fmt.Errorf("sharding: kind %q: %w", k.Name, err))
	}
	return errors.Join(faults...)
}

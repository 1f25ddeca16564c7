// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import "strconv"

// Status is the stage of a member's life. The numbers are ordered: in a merge the
// higher one wins, so a status never goes backwards. The values are part of the wire.
//
//	Joining ─> WeaklyUp ─> Up ─> Preparing ─> Ready
//	   └──────────┴─────────┴────────┴──────────┴──> Leaving ─> Exiting ─> Removed
//	   any of these ──────────────────────────────────────────> Down ────> Removed
type Status uint8

// The statuses.
const (
	StatusNone Status = iota // Not a member, or not known.
	Joining                  // Admitted by a member, not taking part yet.
	WeaklyUp                 // Taking part in a limited way, while the cluster cannot converge.
	Up                       // Taking part.
	Preparing                // Preparing for a shutdown of the whole cluster.
	Ready                    // Ready for a shutdown of the whole cluster.
	Leaving                  // Has asked to leave, and hands its work over.
	Exiting                  // Has handed its work over.
	Down                     // Declared dead; only removal can follow.
	Removed                  // Gone for good: a tombstone has this status, a member never.
)

// String returns the status in lower case with hyphens.
func (s Status) String() string {
	switch s {
	case StatusNone:
		return "none"
	case Joining:
		return "joining"
	case WeaklyUp:
		return "weakly-up"
	case Up:
		return "up"
	case Preparing:
		return "preparing"
	case Ready:
		return "ready"
	case Leaving:
		return "leaving"
	case Exiting:
		return "exiting"
	case Down:
		return "down"
	case Removed:
		return "removed"
	default:
		return "status-" + strconv.Itoa(int(s))
	}
}

// isLive reports whether a member can have status s.
func (s Status) isLive() bool { return s >= Joining && s <= Down }

// leads reports whether a member with status s takes part in convergence and
// is a first choice for leader.
func (s Status) leads() bool { return s >= Up && s <= Leaving }

// IsUp reports whether a member with status s takes part and has not begun to leave: it is
// Up, prepares for a shutdown of the whole cluster, or is ready for one. Such a member has
// an up-number; one with a later status may have skipped Up.
func (s Status) IsUp() bool { return s >= Up && s <= Ready }

// ReachStatus is the statement of an observer about a member that it cannot reach. The
// values are part of the wire.
type ReachStatus uint8

// The statuses of a reachability row. Members without a row are reachable.
const (
	Unreachable ReachStatus = iota + 1 // Does not answer; may come back.
	Terminated                         // Is to be counted on no more: its address was taken, or a command says that it is dead.
)

// String returns the status in lower case.
func (r ReachStatus) String() string {
	switch r {
	case Unreachable:
		return "unreachable"
	case Terminated:
		return "terminated"
	default:
		return "reach-status-" + strconv.Itoa(int(r))
	}
}

func (r ReachStatus) isValid() bool { return r == Unreachable || r == Terminated }

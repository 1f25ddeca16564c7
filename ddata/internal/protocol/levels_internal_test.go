// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// What each strength needs of a set of a size: for a read and for a write that no other set
// is asked for.
func TestLevelsOfOneSet(t *testing.T) {
	for _, of := range []struct {
		name         string
		level        Level
		reads, write [7]int // By the size of the set. Of a half that wins, see below.
	}{
		{"local", Level{Name: Local}, [7]int{}, [7]int{0, 1, 1, 1, 1, 1, 1}},
		{"one", Level{Name: Count, N: 1}, [7]int{0, 1, 1, 1, 1, 1, 1}, [7]int{0, 1, 1, 1, 1, 1, 1}},
		{"three", Level{Name: Count, N: 3}, [7]int{0, 1, 2, 3, 3, 3, 3}, [7]int{0, 1, 2, 3, 3, 3, 3}},
		{"majority", Level{Name: Majority}, [7]int{0, 1, 2, 2, 3, 3, 4}, [7]int{0, 1, 2, 2, 3, 3, 4}},
		{"majority and one", Level{Name: Majority, Extra: 1}, [7]int{0, 1, 2, 3, 4, 4, 5}, [7]int{0, 1, 2, 3, 4, 4, 5}},
		{"majority of at least four", Level{Name: Majority, MinCap: 4}, [7]int{0, 1, 2, 3, 4, 4, 4}, [7]int{0, 1, 2, 3, 4, 4, 4}},
		{"majority and one, of at least four", Level{Name: Majority, Extra: 1, MinCap: 4}, [7]int{0, 1, 2, 3, 4, 4, 5}, [7]int{0, 1, 2, 3, 4, 4, 5}},
		{"all", Level{Name: All}, [7]int{0, 1, 2, 3, 4, 5, 6}, [7]int{0, 1, 2, 3, 4, 5, 6}},
	} {
		for size := 1; size <= 6; size++ {
			t.Run(fmt.Sprintf("%s of %d", of.name, size), func(t *testing.T) {
				v := view{current: numbered(1, size)}
				for n := range size + 1 {
					last := func(id ReplicaID) bool { return int(id) > size-n } // The lowest is in only if all are.
					require.Equal(t, n >= of.reads[size], of.level.reads(&v, last), "a read of %d", n)
					require.Equal(t, n >= of.write[size], of.level.writes(&v, PhaseStable, true, last), "a write to %d", n)
				}
			})
		}
	}
}

// Half of a set with its lowest is enough to read, not to write.
func TestHalfOfASetWithItsLowestIsEnoughToRead(t *testing.T) {
	level := Level{Name: Majority}
	for _, size := range []int{2, 4, 6} {
		v := view{current: numbered(1, size)}
		half := func(id ReplicaID) bool { return int(id) <= size/2 }
		require.True(t, level.reads(&v, half))
		require.False(t, level.writes(&v, PhaseStable, true, half))
	}
}

// While the set changes, a write goes to both sets until the end is sealed, and a read asks
// one.
func TestLevelsWhileTheSetChanges(t *testing.T) {
	three, others := numbered(1, 3), numbered(4, 3)
	of := func(all ...ReplicaID) func(ReplicaID) bool {
		return func(id ReplicaID) bool { return slices.Contains(all, id) }
	}
	joint, ended := view{current: three, next: others}, view{current: three, old: others}
	for _, c := range []struct {
		name   string
		v      view
		phase  Phase
		sealed bool
		level  Level
		in     func(ReplicaID) bool
		reads  bool
		writes bool
	}{
		{"majority, joint, current", joint, PhaseJoint, true, Level{Name: Majority}, of(1, 2), true, false},
		{"majority, joint, next", joint, PhaseJoint, true, Level{Name: Majority}, of(4, 5, 6), false, false},
		{"majority, joint, both", joint, PhaseJoint, true, Level{Name: Majority}, of(2, 3, 5, 6), true, true},
		{"majority, ended, current", ended, PhaseEnded, false, Level{Name: Majority}, of(1, 2), true, false},
		{"majority, ended, both", ended, PhaseEnded, false, Level{Name: Majority}, of(1, 2, 4, 5), true, true},
		{"majority, sealed, current", ended, PhaseEnded, true, Level{Name: Majority}, of(1, 2), true, true},
		{"all, joint, current", joint, PhaseJoint, true, Level{Name: All}, of(1, 2, 3), true, false},
		{"all, joint, a majority of next", joint, PhaseJoint, true, Level{Name: All}, of(1, 2, 3, 4, 5), true, false},
		{"all, joint, both", joint, PhaseJoint, true, Level{Name: All}, of(1, 2, 3, 4, 5, 6), true, true},
		{"all, ended, a majority of old", ended, PhaseEnded, false, Level{Name: All}, of(1, 2, 3, 4, 5), true, true},
		{"all, ended, none of old", ended, PhaseEnded, false, Level{Name: All}, of(1, 2, 3), true, false},
		{"two, joint, one of each", joint, PhaseJoint, true, Level{Name: Count, N: 2}, of(1, 4), true, true},
		{"two, joint, one", joint, PhaseJoint, true, Level{Name: Count, N: 2}, of(4), false, false},
		{"local, ended, one of old", ended, PhaseEnded, false, Level{Name: Local}, of(4), true, true},
		{"strangers", joint, PhaseJoint, true, Level{Name: Majority}, of(7, 8, 9), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.reads, c.level.reads(&c.v, c.in), "reads")
			require.Equal(t, c.writes, c.level.writes(&c.v, c.phase, c.sealed, c.in), "writes")
		})
	}
}

// What a read has found needs no writing back if those agree whom it asks, and nobody asks
// another set.
func TestAgreedOnlyWhileOneSetIsAsked(t *testing.T) {
	level, v := Level{Name: Majority}, view{current: numbered(1, 3), next: numbered(2, 3), old: numbered(3, 3)}
	in := func(id ReplicaID) bool { return id <= 2 }
	require.True(t, level.agreed(&v, PhaseStable, true, in))
	require.True(t, level.agreed(&v, PhaseEnded, true, in))
	require.False(t, level.agreed(&v, PhaseJoint, true, in))
	require.False(t, level.agreed(&v, PhaseEnded, false, in))
	require.False(t, level.agreed(&v, PhaseStable, true, func(id ReplicaID) bool { return id == 1 }))
}

// numbered returns the set of so many replicas from a number on.
func numbered(from ReplicaID, many int) Set {
	var all []Replica
	for i := range many {
		all = append(all, Replica{ID: from + ReplicaID(i)})
	}
	return NewSet(all...)
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
)

// What a later release says in a register goes over into every generation that is made of it, and two registers that
// differ there alone are two values.
func TestGenerationsKeepWhatALaterReleaseSays(t *testing.T) {
	set := NewSet(Replica{ID: 1}, Replica{ID: 2})
	r := Register{Lineage: Lineage{Turn: 1, ID: 2}, Gen: 3, Phase: PhaseStable, Current: set, Unknown: "\x98\x06\x01"}
	require.True(t, r.valid())
	joint := r.joint(NewSet(Replica{ID: 2}, Replica{ID: 3}))
	for name, next := range map[string]Register{
		"stable": r.stable(), "joint": joint, "ended": joint.ended(), "swept": r.swept(7, []crdt.Origin{1}), "again": r.again(nil),
	} {
		require.Equal(t, r.Unknown, next.Unknown, name)
		require.Greater(t, next.Gen, r.Gen, name)
	}
	other := r
	other.Unknown = "\x98\x06\x02"
	require.False(t, r.Equal(&other))
	other.Unknown = strings.Repeat("\x98\x06\x02", MaxUnknownBytes)
	require.False(t, other.valid(), "every replica would store it")
}

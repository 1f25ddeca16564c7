// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/internal/protocol"
)

// A key whose replicas are lost has an error of its own, which names the nodes, for reads and
// for writes; who looks for a missing majority finds one.
func TestLostHomesAreNamed(t *testing.T) {
	o := &outcome{Done: protocol.Done{Verdict: protocol.HomesLost}, answered: []string{"a:1"}, missing: []string{"b:1", "c:1"}}
	for _, err := range []error{o.readError("k"), o.writeError("k")} {
		lost, ok := errors.AsType[*HomesLostError](err)
		require.True(t, ok)
		require.Equal(t, []string{"b:1", "c:1"}, lost.Missing)
		require.ErrorContains(t, err, `key "k": the replicas that held it are gone: b:1, c:1; a:1 have answered`)
		_, ok = errors.AsType[*NoQuorumError](err)
		require.True(t, ok)
		require.Equal(t, "homes-lost", wordOf(err))
	}
}

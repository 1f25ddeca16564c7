// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

func TestWhatIsWrongWithAnID(t *testing.T) {
	long := strings.Repeat("é", protocol.MaxEntityBytes/2)
	for id, want := range map[string]string{
		"a": "", long: "", "": "is empty", long + "a": "has 513 bytes, at most 512", "\xff": "UTF-8",
	} {
		fault := protocol.EntityFault(id)
		require.Contains(t, fault, want, "%q", id)
		require.Equal(t, want == "", fault == "", "%q: %s", id, fault)
	}
}

func TestLongNamesAreClipped(t *testing.T) {
	name := strings.Repeat("x", 64)
	require.Equal(t, name, protocol.Clip(name))
	require.Equal(t, name+"...", protocol.Clip(name+"y"))
}

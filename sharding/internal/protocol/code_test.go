// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Each code has a text of its own, and a code of a later version means that the outcome is
// unknown.
func TestCodesSayWhatHappened(t *testing.T) {
	texts := map[string]bool{}
	for code := range protocol.Codes {
		texts[protocol.Code(code).String()] = true
	}
	require.Len(t, texts, protocol.Codes)
	require.Equal(t, "ok", protocol.CodeOK.String())
	require.Equal(t, "code 200: unknown outcome", protocol.Code(200).String())
}

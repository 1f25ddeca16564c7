// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The server answers each line with one line, when it has made the change.
func TestEachLineIsAnswered(t *testing.T) {
	lines := "+ 127.0.0.1:1\n+ [fd00::1]:2\n+ 127.0.0.1:1\n127.0.0.1:3\n+ node-1:7946\n\n- 127.0.0.1:1\n- [fd00::1]:2\n"
	var out bytes.Buffer
	require.NoError(t, serve(strings.NewReader(lines), &out))
	said := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.True(t, strings.HasPrefix(said[0], "127.0.0.1:"), said[0])
	const wrong = "I need + or -, and an address such as 127.0.0.1:7946"
	require.Equal(t, []string{
		service + " lists 127.0.0.1:1",
		service + " lists 127.0.0.1:1 [fd00::1]:2",
		service + " lists [fd00::1]:2 127.0.0.1:1",
		wrong, wrong, wrong,
		service + " lists [fd00::1]:2",
		service + " does not exist",
	}, said[1:])
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever a node answers in place of metrics, only what is followed comes out of it.
func FuzzCounters(f *testing.F) {
	for _, text := range []string{
		"", "\n", "# HELP x\n", "quorate_node_messages_total 5", "quorate_node_messages_total{a=\"} 7\"} 1e3 17\nquorate_node_messages_total{} NaN\n",
		"quorate_node_messages_total", "{} 1", "} {", "quorate_node_io_bytes_total{a=\"\xff\"} -Inf",
	} {
		f.Add(text)
	}
	known := make(map[string]bool)
	for _, r := range Rates() {
		known[r[0]] = true
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name := range counters(text) {
			require.True(t, known[name], name)
		}
	})
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReferenceIsPrintedInThreeForms(t *testing.T) {
	status, out, _ := run(t, &count{}, "config", "reference", "membership.fence")
	require.Zero(t, status)
	require.Contains(t, out, "membership.fence\n  meaning    The longest time")
	require.Contains(t, out, "  type       duration\n  default    3s\n")
	require.Contains(t, out, "  reload     needs a restart of the node\n  variable   QUORATE_MEMBERSHIP__FENCE\n")

	status, all, _ := run(t, &count{}, "config", "reference")
	require.Zero(t, status)
	require.Contains(t, all, "\nnode.address\n")
	require.Contains(t, all, "  default    must be set\n")
	require.Contains(t, all, "may change while the node runs")

	status, out, _ = run(t, &count{}, "config", "reference", "-markdown", "sharding")
	require.Zero(t, status)
	require.Contains(t, out, "| `sharding.on-stuck` | text | `abort` | one of abort, abandon |")
	require.NotContains(t, out, "`node")

	status, out, _ = run(t, &count{}, "--json", "config", "reference", "node.roles")
	require.Zero(t, status)
	var settings []map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &settings))
	require.Len(t, settings, 1)
	require.Equal(t, "list of text", settings[0]["type"])

	status, _, errs := run(t, &count{}, "config", "reference", "node.rols")
	require.Equal(t, 2, status)
	require.Contains(t, errs, `no key is named "node.rols"`)
}

func TestSchemaIsPrinted(t *testing.T) {
	status, out, _ := run(t, &count{}, "config", "schema")
	require.Zero(t, status)
	var schema struct {
		Schema     string         `json:"$schema"`
		Properties map[string]any `json:"properties"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &schema))
	require.Equal(t, "https://json-schema.org/draft/2020-12/schema", schema.Schema)
	require.Contains(t, schema.Properties, "node")
	require.Contains(t, schema.Properties, "include")
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
	"github.com/quorate/quorate/tools/internal/reference"
)

// The page of the contract has a row for each field and value of the generated code, and no other, so that what reads
// the .proto files passes nothing over.
func TestEachFieldOfTheContractHasARow(t *testing.T) {
	page, err := reference.Contract(root)
	require.NoError(t, err)
	rows := map[string][]string{}
	title := ""
	for line := range strings.Lines(page) {
		if name, ok := strings.CutPrefix(line, "### "); ok {
			title = strings.TrimSpace(name)
		}
		if strings.HasPrefix(line, "| `") {
			cells := strings.Split(line, " | ")
			rows[title] = append(rows[title], strings.TrimSpace(strings.Join(cells[:3], " | ")))
		}
	}
	for _, file := range []protoreflect.FileDescriptor{
		pluginv1.File_quorate_plugin_v1_plugin_proto, pluginv1.File_quorate_plugin_v1_downing_proto, pluginv1.File_quorate_plugin_v1_allocation_proto,
		pluginv1.File_quorate_plugin_v1_failuredetector_proto, pluginv1.File_quorate_plugin_v1_joindecider_proto, pluginv1.File_quorate_plugin_v1_discovery_proto,
	} {
		for i := range file.Messages().Len() {
			m := file.Messages().Get(i)
			var want []string
			for i := range m.Fields().Len() {
				f := m.Fields().Get(i)
				want = append(want, fmt.Sprintf("| `%s` | %d | %s", f.Name(), f.Number(), kindOf(f)))
			}
			require.Equal(t, want, rows[string(m.Name())], m.Name())
			require.Zero(t, m.Messages().Len()+m.Enums().Len(), "a declaration within another one has no table")
		}
		for i := range file.Enums().Len() {
			e := file.Enums().Get(i)
			var want []string
			for i := range e.Values().Len() {
				want = append(want, fmt.Sprintf("| `%s` | %d |", e.Values().Get(i).Name(), e.Values().Get(i).Number()))
			}
			require.Equal(t, want, rows[string(e.Name())], e.Name())
		}
		for i := range file.Services().Len() {
			require.Len(t, rows[string(file.Services().Get(i).Name())], file.Services().Get(i).Methods().Len())
		}
	}
}

// kindOf is the type of a field as the page has it.
func kindOf(f protoreflect.FieldDescriptor) string {
	kind := f.Kind().String()
	switch {
	case f.Message() != nil:
		kind = string(f.Message().Name())
	case f.Enum() != nil:
		kind = string(f.Enum().Name())
	}
	if f.IsList() {
		return "list of " + kind
	}
	return kind
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package host_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects of the schema of settings makes a test fail: of the host, of the SDK that makes the schema, or
// of who asks for it.
func TestMutantsAreCaught(t *testing.T) {
	const schema, faults, sdk = "plugins/host/schema.go", "plugins/host/schema_faults.go", "plugins/sdk/"
	const unusable, bounded, said = "TestSchemasThatNoHostCanUseAreRefused", "TestTheWorkOfASchemaIsBounded", "TestFaultsThatASchemaFindsAreThoseOfSettings"
	const agree, described = "TestSchemaAndDecoderAgree", "TestAPluginIsDescribedBeforeItIsConfigured"
	var all []simulationtest.Mutant
	for _, m := range []struct{ name, file, of, test, old, to string }{
		{"a schema may have any size", schema, "", unusable, "	if len(text) > plugins.MaxSchemaBytes {\n", "	if len(text) > plugins.MaxSchemaBytes && !mutant(NAME) {\n"},
		{"a schema may have any number of values", schema, "", unusable, "values > 2*maxSchemaValues {", "values > 2*maxSchemaValues && !mutant(NAME) {"},
		{"a schema may be as deep as it likes", schema, "", unusable, "		if depth > maxSchemaDepth {\n", "		if depth > maxSchemaDepth && !mutant(NAME) {\n"},
		{"the numbers of a schema may be of any size", schema, "", unusable, "err != nil || n > maxExponent || n < -maxExponent {", "(err != nil || n > maxExponent || n < -maxExponent) && !mutant(NAME) {"},
		{"a schema may cost eight times as much", schema, "", bounded, "	if b.left -= n; b.left < 0 && b.refused == nil {\n", "	if b.left -= n; b.left < -map[bool]int{true: 7 * maxWork}[mutant(NAME)] && b.refused == nil {\n"},
		{"patterns cost nothing", schema, "", bounded, "			n += len(v) * len(s.Pattern.String()) / matched\n", "			if !mutant(NAME) {\n				n += len(v) * len(s.Pattern.String()) / matched\n			}\n"},
		{"what is referred to costs nothing", schema, "", bounded, "{s.Ref, s.Not, s.If, s.Then, s.Else}", "map[bool][]*jsonschema.Schema{false: {s.Ref, s.Not, s.If, s.Then, s.Else}}[mutant(NAME)]"},
		{"a dynamic reference is followed", schema, "", bounded, "	if s.DynamicRef != nil || s.RecursiveRef != nil {\n", "	if (s.DynamicRef != nil || s.RecursiveRef != nil) && !mutant(NAME) {\n"},
		{"durations have no range", schema, "", said, "	case !d.within.Has(float64(length)):\n", "	case !d.within.Has(float64(length)) && !mutant(NAME):\n"},
		{"a mistake is several faults", faults, "", said, "	all = slices.CompactFunc(all,", "	all = map[bool]func(plugins.SettingErrors, func(a, b plugins.SettingError) bool) plugins.SettingErrors{\n		false: slices.CompactFunc[plugins.SettingErrors],\n		true:  func(s plugins.SettingErrors, _ func(a, b plugins.SettingError) bool) plugins.SettingErrors { return s },\n	}[mutant(NAME)](all,"},
		{"any number of faults is told", faults, "", "TestFaultsThatASchemaFindsAreBounded", "	return all[:min(len(all), wire.MaxSettingErrors)]\n", "	if mutant(NAME) {\n		return all\n	}\n	return all[:min(len(all), wire.MaxSettingErrors)]\n"},
		{"a schema permits unknown keys", sdk + "schema.go", "../sdk", agree, "\"additionalProperties\": false}", "\"additionalProperties\": mutant(NAME)}"},
		{"a schema demands nothing", sdk + "schema.go", "../sdk", agree, "	if len(must) > 0 {\n", "	if len(must) > 0 && !mutant(NAME) {\n"},
		{"a schema has no ranges", sdk + "schema.go", "../sdk", agree, "	for keyword, bound := range r.Keywords() {\n", "	for keyword, bound := range r.Keywords() {\n		if mutant(NAME) {\n			continue\n		}\n"},
		{"the SDK demands nothing", sdk + "settings.go", "../sdk", agree, "!given && required(fields[name]) {", "!given && required(fields[name]) && !mutant(NAME) {"},
		{"the SDK keeps to no range", sdk + "settings.go", "../sdk", agree, "r := rangeOf(tags); !r.Has(n) {", "r := rangeOf(tags); !r.Has(n) && !mutant(NAME) {"},
		{"the SDK takes any text", sdk + "settings.go", "../sdk", agree, "len(allowed) > 0 && !slices.Contains(allowed, fmt.Sprint(v)) {", "len(allowed) > 0 && !slices.Contains(allowed, fmt.Sprint(v)) && !mutant(NAME) {"},
		{"a plugin sends a schema of any size", "plugins/internal/server/server.go", "../internal/server", described, "	if err == nil && len(schema) > plugins.MaxSchemaBytes {\n", "	if err == nil && len(schema) > plugins.MaxSchemaBytes && !mutant(NAME) {\n"},
		{"a host takes a schema of any size", "plugins/internal/client/client.go", "../internal/client", "TestDescriptionsThatBreakTheContractAreRefused", "err == nil && n > plugins.MaxSchemaBytes {", "err == nil && n > plugins.MaxSchemaBytes && !mutant(NAME) {"},
	} {
		all = append(all, simulationtest.Mutant{
			Name: m.name, Package: m.of, Tests: []string{m.test}, Edits: []simulationtest.Edit{{File: m.file, Old: m.old, New: m.to}},
		})
	}
	simulationtest.RequireFound(t, "../..", all)
}

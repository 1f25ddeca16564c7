// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/quorate/quorate/config/field"
)

// Files know no variables, and who writes one as for a shell, or as Kubernetes replaces it in a manifest, would have
// a node look for a host of that name. The values of all sections are looked through ([unreplaced]).

// variable is what looks like a variable that somebody should have replaced.
var variable = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$\([A-Za-z_][A-Za-z0-9_]*\)`)

// unreplaced reports values in which a variable stands. Those of plugins are their own: what they are started with may
// be for a shell.
func unreplaced(c Config) error {
	var faults []error
	eachText(reflect.ValueOf(c), "", func(key, text string) {
		if found := variable.FindString(text); found != "" && !strings.HasPrefix(key, "plugins.") {
			name := "QUORATE_" + strings.ReplaceAll(strings.ToUpper(strings.ReplaceAll(key, "-", "_")), ".", "__")
			faults = append(faults, field.Errorf(key, "%q has the variable %s, and nothing replaces it in a file: write ${env:%s} for a variable of the environment, or take the key out and set %s", field.Clip(text), found, strings.Trim(found, "${}()"), name))
		}
	})
	return errors.Join(faults...)
}

// eachText calls a function for each text in a configuration, with its key. Those of a list have the key of the
// list.
func eachText(v reflect.Value, key string, tell func(key, text string)) {
	within := func(name string) string { return strings.TrimPrefix(key+"."+name, ".") }
	switch v.Kind() { //nolint:exhaustive // No other kind holds text.
	case reflect.String:
		tell(key, v.String())
	case reflect.Slice:
		for i := range v.Len() {
			eachText(v.Index(i), key, tell)
		}
	case reflect.Map:
		names := map[string]reflect.Value{}
		for _, k := range v.MapKeys() {
			names[fmt.Sprint(k.Interface())] = v.MapIndex(k)
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			eachText(names[name], within(name), tell)
		}
	case reflect.Struct:
		for f, value := range v.Fields() {
			name, rest, _ := strings.Cut(f.Tag.Get("koanf"), ",")
			switch {
			case rest == "squash":
				eachText(value, key, tell)
			case name != "" && name != "-":
				eachText(value, within(name), tell)
			}
		}
	}
}

// lonely says why a node finds nobody by itself, empty if it does.
func lonely(c Config) string {
	if len(c.Membership.SeedNodes) > 0 || c.Membership.Discovery.Looks() {
		return ""
	}
	return "is empty, and membership.discovery.methods too, so that the node finds nobody and joins no cluster until the program calls Join, or an operator says quorate join"
}

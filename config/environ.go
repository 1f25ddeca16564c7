// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// variable is one environment variable that begins with [Prefix].
type variable struct {
	name  string
	value string
	path  []string // empty for a name without a level separator
}

// variables returns the overrides in an environment, sorted by name, and separately
// the variables that have the prefix but no level separator. Of several values of one
// name the last counts, as in a shell.
func variables(environ []string) (overrides, stray []variable, faults Errors) {
	values := map[string]string{}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, Prefix) {
			values[name] = value
		}
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	owner := map[string]string{} // joined path -> name
	for _, name := range names {
		v := variable{name: name, value: values[name]}
		if !strings.Contains(name[len(Prefix):], "__") {
			stray = append(stray, v)
			continue
		}
		var reason string
		if v.path, reason = variablePath(name[len(Prefix):]); reason == "" {
			reason = badText(v.value)
		}
		if reason != "" {
			faults = append(faults, &Error{File: "$" + oneLine(name), Key: display(v.path), Reason: reason, Err: ErrSyntax})
			continue
		}
		owner[strings.Join(v.path, separator)] = name
		overrides = append(overrides, v)
	}
	for _, v := range overrides {
		for n := 1; n < len(v.path); n++ {
			if other, ok := owner[strings.Join(v.path[:n], separator)]; ok {
				faults = append(faults, &Error{
					File: "$" + v.name, Key: display(v.path), Err: ErrSyntax,
					Reason: fmt.Sprintf("contradicts $%s, which sets %s as a whole", other, display(v.path[:n])),
				})
			}
		}
	}
	return overrides, stray, faults
}

// variablePath turns MEMBERSHIP__GOSSIP_INTERVAL into membership, gossip-interval.
func variablePath(name string) (path []string, reason string) {
	for _, r := range name {
		if r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
			return nil, "the name may hold capital letters, digits and underscores only"
		}
	}
	for part := range strings.SplitSeq(name, "__") {
		if part == "" || part[0] == '_' || part[len(part)-1] == '_' {
			return nil, "the name must be SECTION__KEY, with two underscores between levels and one for a hyphen"
		}
		path = append(path, strings.ReplaceAll(strings.ToLower(part), "_", "-"))
	}
	if len(path) > MaxDepth {
		return nil, fmt.Sprintf("is nested deeper than %d levels", MaxDepth)
	}
	return path, ""
}

// badText returns why no setting could hold a value, or "".
func badText(value string) string {
	if strings.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }) {
		return "the value holds a control character or is not UTF-8"
	}
	if len(value) > maxSizeBytes {
		return fmt.Sprintf("the value is larger than %d bytes", maxSizeBytes)
	}
	return ""
}

// misspelt returns the fault of a variable that is a known key written with one
// underscore between levels, or a section without a key. It returns nil for any other
// name.
func (v variable) misspelt(known [][]string) *Error {
	plain := func(s string) string { return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s)) }
	for _, path := range known {
		if len(path) > 1 && plain(path[0]) == plain(v.name[len(Prefix):]) {
			return &Error{
				File: "$" + v.name, Key: path[0], Err: ErrUnknownKey,
				Reason: fmt.Sprintf("names a section and no key: set %s%s__KEY for a key of it, with two underscores",
					Prefix, strings.ToUpper(strings.ReplaceAll(path[0], "-", "_"))),
			}
		}
		if len(path) > 1 && plain(strings.Join(path, "")) == plain(v.name[len(Prefix):]) {
			right := strings.ToUpper(strings.ReplaceAll(strings.Join(path, "__"), "-", "_"))
			return &Error{
				File: "$" + v.name, Key: display(path), Nearest: Prefix + right, Err: ErrUnknownKey,
				Reason: "the levels of a key are separated by two underscores",
			}
		}
	}
	return nil
}

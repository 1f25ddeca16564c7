// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"cmp"
	"strconv"
	"strings"
)

// CompareVersions orders app-versions: -1 when a is older than b, 0 when they
// are the same version, +1 when a is newer.
//
// A version is up to three numbers joined by dots, missing ones counting as
// zero, then possibly "-" or "+" and a qualifier. A qualifier that begins with
// a number counts the changes since the release, so 1.0.0 < 1.0.0+3-abc <
// 1.0.0+10-def. Any other qualifier marks a version before the release, so
// 1.0.0-RC1 < 1.0.0, and qualifiers are compared as text. A text that is no
// such version, and also a single number with a qualifier, is older than 0.0.0
// and is compared as text; empty is the oldest. The order is total on versions;
// texts that mean the same version, such as 1.2 and 1.2.0, are equal.
func CompareVersions(a, b string) int {
	if a == "" || b == "" {
		return compareBool(a != "", b != "")
	}
	va, vb := parseVersion(a), parseVersion(b)
	for i := range va.numbers {
		if c := cmp.Compare(va.numbers[i], vb.numbers[i]); c != 0 {
			return c
		}
	}
	if c := compareBool(va.rest == "", vb.rest == ""); c != 0 {
		return c
	}
	return cmp.Compare(va.rest, vb.rest)
}

// version is an app-version taken apart: three numbers, the count of changes
// since that release, and the rest.
type version struct {
	numbers [4]uint32
	rest    string
}

func parseVersion(s string) version {
	text := version{rest: s}
	core, qualifier := s, ""
	if i := strings.IndexAny(s, "-+"); i >= 0 {
		core, qualifier = s[:i], s[i+1:]
	}
	parts := strings.Split(core, ".")
	if len(parts) > 3 || len(parts) == 1 && core != s {
		return text
	}
	var v version
	for i, p := range parts {
		n, ok := parseNumber(p)
		if !ok {
			return text
		}
		v.numbers[i] = n
	}
	head, tail := qualifier, ""
	if i := strings.IndexAny(qualifier, "-+"); i >= 0 {
		head, tail = qualifier[:i], qualifier[i+1:]
	}
	if n, ok := parseNumber(head); ok {
		v.numbers[3], v.rest = n, tail
		return v
	}
	v.rest = qualifier
	return v
}

// parseNumber reads a decimal number without a sign that fits in 32 bits.
func parseNumber(s string) (uint32, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err == nil
}

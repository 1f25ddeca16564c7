// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"cmp"
	"strconv"
	"strings"
)

// Version is the version of the program that a member runs, as its operators
// write it. Any text is allowed.
type Version string

// Compare is [CompareVersions].
func (v Version) Compare(o Version) int { return CompareVersions(v, o) }

// CompareVersions orders versions of programs, older first. Up to three
// numbers separated by dots are compared as numbers, then a commit distance
// as in 1.0.0+3-abc (3), then the rest as text, where a version without a
// rest is the newest: 1.0.0-RC1 < 1.0.0, and 1.0.0+3-abc < 1.0.0+10-def.
// Missing numbers count as 0. What does not parse is compared as text, below
// everything with a number above 0.
func CompareVersions[T ~string](a, b T) int {
	if a == b {
		return 0
	}
	x, y := parseVersion(string(a)), parseVersion(string(b))
	for i := range x.numbers {
		if c := cmp.Compare(x.numbers[i], y.numbers[i]); c != 0 {
			return c
		}
	}
	switch {
	case x.rest == y.rest:
		return 0
	case x.rest == "":
		return 1
	case y.rest == "":
		return -1
	}
	return strings.Compare(x.rest, y.rest)
}

// version is a parsed version: up to three dotted numbers and the commit
// distance behind the last of them.
type version struct {
	numbers [4]uint64
	rest    string
}

func parseVersion(s string) version {
	segments := strings.Split(s, ".")
	if len(segments) > 3 {
		return version{rest: s}
	}
	var v version
	last := len(segments) - 1
	for i, segment := range segments[:last] {
		n, err := strconv.ParseUint(segment, 10, 63)
		if err != nil {
			return version{rest: s}
		}
		v.numbers[i] = n
	}
	number, rest := segments[last], ""
	if cut := strings.IndexAny(number, "-+"); cut >= 0 {
		number, rest = number[:cut], number[cut+1:]
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil {
		return version{rest: s}
	}
	v.numbers[last] = n
	v.numbers[last+1], v.rest = parseDistance(rest)
	return v
}

// parseDistance splits "10-1234abcd" into the distance 10 and the rest.
func parseDistance(s string) (uint64, string) {
	digits, rest, ok := strings.Cut(s, "-")
	if !ok {
		return 0, s
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return 0, s
	}
	return n, rest
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// errVersion says what an app-version looks like.
var errVersion = errors.New(`must be one to three numbers joined by dots, possibly with a "v" before and a qualifier after "-" or "+", as in 1.10.0, v1.10.0-rc2 or 1.10.0+3-1a2b3c4`)

// CheckVersion reports an app-version that [CompareVersions] could compare only as
// text: who deploys "build-9" and then "build-10" would find the older one preferred.
// Empty is allowed: a node that says no version, which is older than every version.
func CheckVersion(s string) error {
	if _, ok := parseVersion(s); !ok && s != "" {
		return fmt.Errorf("%q %w", s, errVersion)
	}
	return nil
}

// CompareVersions orders app-versions: -1 when a is older than b, 0 when they are the
// same version, +1 when a is newer. It is the one comparison of them; strategies that
// look at versions use it too.
//
// A version is up to three numbers joined by dots, of which missing ones count as
// zero, with or without a "v" before. A qualifier may follow after "-" or "+". One that
// begins with a number counts the changes since the release, so 1.0.0 < 1.0.0+3-abc <
// 1.0.0+10-def. Any other marks a version before the release, so 1.0.0-rc1 < 1.0.0; and
// the numbers in it count as numbers, so 1.0.0-rc9 < 1.0.0-rc10. What is no such text
// (see [CheckVersion]; a member of another program may say it) is older than every
// version and compared as text, and empty is the oldest. The order is total on versions;
// texts that mean the same one, such as v1.2 and 1.2.0, are equal.
func CompareVersions(a, b string) int {
	if a == b {
		return 0
	}
	x, isX := parseVersion(a)
	y, isY := parseVersion(b)
	if !isX || !isY {
		return cmp.Or(compareBools(isX, isY), strings.Compare(a, b))
	}
	for i := range x.numbers {
		if c := cmp.Compare(x.numbers[i], y.numbers[i]); c != 0 {
			return c
		}
	}
	return cmp.Or(compareBools(x.rest == "", y.rest == ""), compareNatural(x.rest, y.rest))
}

// version is an app-version taken apart.
type version struct {
	numbers [4]uint64 // The release, then the count of changes since.
	rest    string    // The qualifier without that count.
}

func parseVersion(s string) (v version, ok bool) {
	core, qualifier := strings.TrimPrefix(s, "v"), ""
	if i := strings.IndexAny(core, "-+"); i >= 0 {
		core, qualifier = core[:i], core[i+1:]
	}
	parts := strings.Split(core, ".")
	if len(parts) > 3 {
		return version{}, false
	}
	for i, p := range parts {
		if v.numbers[i], ok = parseNumber(p); !ok {
			return version{}, false
		}
	}
	head, tail := qualifier, ""
	if i := strings.IndexAny(qualifier, "-+"); i >= 0 {
		head, tail = qualifier[:i], qualifier[i+1:]
	}
	if n, counts := parseNumber(head); counts {
		v.numbers[3], v.rest = n, tail
		return v, true
	}
	v.rest = qualifier
	return v, true
}

// parseNumber reads a decimal number without a sign that fits in 64 bits.
func parseNumber(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64) // Takes no sign.
	return n, err == nil
}

// compareNatural compares texts piece by piece, where a run of digits is a number.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		x, y := run(a), run(b)
		a, b = a[len(x):], b[len(y):]
		if isDigit(x[0]) && isDigit(y[0]) {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Compare(len(x), len(y)); c != 0 {
				return c
			}
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// run returns the digits, or the other bytes, with which a text that is not empty
// begins.
func run(s string) string {
	for i := 1; i < len(s); i++ {
		if isDigit(s[i]) != isDigit(s[0]) {
			return s[:i]
		}
	}
	return s
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

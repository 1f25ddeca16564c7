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

// errVersion describes the form of an app-version.
var errVersion = errors.New(`must be one to three numbers joined by dots, possibly with a "v" before and a qualifier after "-" or "+", as in 1.10.0, v1.10.0-rc2 or 1.10.0+3-1a2b3c4`)

// CheckVersion returns an error for an app-version that [CompareVersions] could
// compare only as text: after a deployment of "build-9" and then of "build-10" the
// older one would be preferred. The empty text is allowed: a node without a version,
// which is older than every version.
func CheckVersion(s string) error {
	if _, ok := parseVersion(s); !ok && s != "" {
		return fmt.Errorf("%q %w", s, errVersion)
	}
	return nil
}

// CompareVersions orders app-versions: -1 when a is older than b, 0 when they are the
// same version, +1 when a is newer. Everything that orders versions uses it,
// strategies too.
//
// A version is up to three numbers joined by dots, with or without a "v" before;
// missing numbers count as zero. A qualifier may follow after "-" or "+". A qualifier
// that begins with a number counts the changes since the release, so 1.0.0 <
// 1.0.0+3-abc < 1.0.0+10-def. Any other qualifier marks a version before the release,
// so 1.0.0-rc1 < 1.0.0; the numbers in it count as numbers, so 1.0.0-rc9 < 1.0.0-rc10.
// A text of another form (see [CheckVersion]; a member that runs another program may
// have one) is older than every version and compared as text, and the empty text is
// the oldest. The order is total on versions; texts for the same version, such as v1.2
// and 1.2.0, are equal.
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

// version is a parsed app-version.
type version struct {
	numbers [4]uint64 // The release, then the number of changes since the release.
	rest    string    // The qualifier, without the number of changes.
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

// run returns the digits, or the other bytes, with which a text begins that is not
// empty.
func run(s string) string {
	for i := 1; i < len(s); i++ {
		if isDigit(s[i]) != isDigit(s[0]) {
			return s[:i]
		}
	}
	return s
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

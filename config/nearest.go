// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// nearest returns the known key closest to the last part of path: a sibling if one is
// close, otherwise the full path of the same word elsewhere, otherwise "".
func nearest(path, siblings []string, known [][]string) string {
	word := path[len(path)-1]
	best, least := "", max(2, len(word)/3)+1
	for _, sibling := range siblings {
		if n := distance(strings.ToLower(word), sibling); n < least {
			best, least = sibling, n
		}
	}
	if best != "" {
		return best
	}
	for _, other := range known {
		if other[len(other)-1] == word {
			return display(other)
		}
	}
	return ""
}

// distance is the number of letters to insert, delete, replace, or swap with their
// neighbour to turn a into b (the optimal string alignment distance). Words of more
// than 128 letters are not compared: no key is that long, and the cost is quadratic.
func distance(a, b string) int {
	const longest = 128
	if len(a) > longest || len(b) > longest {
		return longest
	}
	var rows [longest + 1][longest + 1]int
	for i := range len(a) + 1 {
		rows[i][0] = i
	}
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			n := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				n = min(n, rows[i-2][j-2]+1)
			}
			rows[i][j] = n
		}
	}
	return rows[len(a)][len(b)]
}

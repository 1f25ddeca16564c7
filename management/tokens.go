// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"
	"unicode"
)

const (
	// tokensBytesMax bounds the file of tokens.
	tokensBytesMax = 64 << 10
	// othersWrite are the bits of a mode that let others than its owner write a file.
	othersWrite = 0o022
)

// token is a line of the file of tokens. The token itself is not in the file: who reads the
// file becomes no operator.
type token struct {
	owner string
	ends  time.Time // Zero for never.
	sum   [sha256.Size]byte
}

type tokens []token

// readTokens reads the file of tokens. Its error names the file and the line.
func readTokens(path string) (tokens, error) {
	file, err := os.Open(path) //nolint:gosec // The configuration names it.
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // It was only read.
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm()&othersWrite != 0 {
		return nil, fmt.Errorf("%s has mode %s: it must be a file that only its owner writes (chmod 600)", path, info.Mode())
	}
	text, err := io.ReadAll(io.LimitReader(file, tokensBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(text) > tokensBytesMax {
		return nil, fmt.Errorf("%s has more than %d bytes", path, tokensBytesMax)
	}
	return parseTokens(path, text)
}

// parseTokens parses lines of a name, an end and a checksum. Empty lines and those that begin
// with # are passed over.
func parseTokens(path string, text []byte) (tokens, error) {
	var all tokens
	number := 0
	for line := range bytes.Lines(text) {
		number++
		fields := strings.Fields(string(line))
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		t, err := parseToken(fields)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		all = append(all, t)
	}
	return all, nil
}

func parseToken(fields []string) (t token, err error) {
	const name, ends, sum, all = 0, 1, 2, 3
	if len(fields) != all {
		return t, fmt.Errorf("has %d words, not three: a name, when the token ends (or never), and its SHA-256", len(fields))
	}
	t.owner = fields[name]
	if strings.ContainsFunc(t.owner, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return t, fmt.Errorf("the name %q has characters that cannot be printed", t.owner)
	}
	if fields[ends] != "never" {
		if t.ends, err = time.Parse(time.RFC3339, fields[ends]); err != nil {
			return t, fmt.Errorf("%q is neither a time as 2027-01-31T00:00:00Z nor never", fields[ends])
		}
	}
	if n, err := hex.Decode(t.sum[:], []byte(fields[sum][:min(len(fields[sum]), 2*len(t.sum))])); err != nil || n != len(t.sum) || len(fields[sum]) != 2*n {
		return t, fmt.Errorf("the checksum of %s is not 64 hexadecimal digits", t.owner)
	}
	return t, nil
}

// owner returns whose token it is, or why it is nobody's. Only checksums are compared, and all
// of them, so that the time tells nothing.
func (all tokens) owner(given string, now time.Time) (string, *Error) {
	sum := sha256.Sum256([]byte(given))
	var found token
	for _, t := range all {
		if subtle.ConstantTimeCompare(t.sum[:], sum[:]) == 1 {
			found = t
		}
	}
	switch {
	case found.owner == "":
		return "", refuse(http.StatusUnauthorized, "the token is not one of this node's")
	case !found.ends.IsZero() && !now.Before(found.ends):
		return "", refuse(http.StatusUnauthorized, "the token has ended on %s", found.ends.Format(time.RFC3339))
	}
	return "token of " + found.owner, nil
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package bearer reads files of bearer tokens, by which the HTTP interface of a node knows operators,
// and its gateway clients. A file has a line for each token: its owner, when it ends (as
// 2027-01-31T00:00:00Z, or never), and its SHA-256 in hexadecimal digits. Who reads the file has no
// token by that.
//
//	tokens, err := bearer.Read("/etc/bank/tokens")
//	owner, err := tokens.Owner(given, time.Now())
//
// Nothing is kept between calls, so that a line that is taken out counts at once. The functions may be
// called from any goroutine.
package bearer

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
	"unicode"
)

const (
	// maxTokensBytes bounds the file of tokens.
	maxTokensBytes = 64 << 10
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

// Tokens are the tokens of a file.
type Tokens struct{ all []token }

// ErrUnknown says that a token is not one of the file, or has ended.
var ErrUnknown = errors.New("bearer: unknown token")

// Error is the error of a token that counts for nobody. It wraps [ErrUnknown].
type Error struct{ Text string }

// Error says what is wrong with the token.
func (e *Error) Error() string { return e.Text }

// Unwrap returns [ErrUnknown].
func (e *Error) Unwrap() error { return ErrUnknown }

// Read reads a file of tokens, which only its owner may be able to write. Its error names the
// file and the line.
func Read(path string) (Tokens, error) {
	file, err := os.Open(path)
	if err != nil {
		return Tokens{}, err
	}
	defer file.Close() //nolint:errcheck // It was only read.
	info, err := file.Stat()
	if err != nil {
		return Tokens{}, err
	}
	if !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm()&othersWrite != 0 {
		return Tokens{}, fmt.Errorf("%s has mode %s: it must be a file that only its owner writes (chmod 600)", path, info.Mode())
	}
	text, err := io.ReadAll(io.LimitReader(file, maxTokensBytes+1))
	if err != nil {
		return Tokens{}, err
	}
	if len(text) > maxTokensBytes {
		return Tokens{}, fmt.Errorf("%s has more than %d bytes", path, maxTokensBytes)
	}
	return parse(path, text)
}

// Check returns why a file of tokens is of no use to who starts: that of [Read], or that nobody would be let in since
// it has none. Under a running program a file may be emptied, to let nobody in any more.
func Check(path string) error {
	t, err := Read(path)
	if err == nil && len(t.all) == 0 {
		err = fmt.Errorf("%s has no token, so that nobody is let in: write a name, when it ends (or never), and the SHA-256 of a token", path)
	}
	return err
}

// parse parses lines of a name, an end and a checksum. Empty lines and those that begin
// with # are passed over.
func parse(path string, text []byte) (Tokens, error) {
	var all []token
	number := 0
	for line := range bytes.Lines(text) {
		number++
		fields := strings.Fields(string(line))
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		t, err := parseToken(fields)
		if err != nil {
			return Tokens{}, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		all = append(all, t)
	}
	return Tokens{all}, nil
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

// Owner returns whose token it is, or an [*Error] that says why it is nobody's. Only checksums are compared, and all
// of them, so that the time tells nothing.
func (t Tokens) Owner(given string, now time.Time) (string, error) {
	sum := sha256.Sum256([]byte(given))
	var found token
	for _, known := range t.all {
		if subtle.ConstantTimeCompare(known.sum[:], sum[:]) == 1 {
			found = known
		}
	}
	switch {
	case found.owner == "":
		return "", &Error{"the token is not one of this node's"}
	case !found.ends.IsZero() && !now.Before(found.ends):
		return "", &Error{"the token has ended on " + found.ends.Format(time.RFC3339)}
	}
	return found.owner, nil
}

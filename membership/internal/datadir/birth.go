// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// ErrDamaged is wrapped by errors about a file that does not hold what was written.
var ErrDamaged = errors.New("damaged, or not written by a node")

// ErrForeign is wrapped by errors about a whole file that is of another cluster, or
// of a newer version.
var ErrForeign = errors.New("not of this node")

const (
	birthMagic   = "quorate-birth"
	birthVersion = "1"

	// birthBytesMax is above the longest file: a cluster name of 255 bytes, each of
	// which may be written as four.
	birthBytesMax = 2048
)

// birth is what the file of that name holds.
type birth struct {
	born    int64  // Unix milliseconds, above zero.
	cluster string // The name of the cluster.
}

// text returns b as it is written, with its check sum (CRC-32, IEEE).
func (b birth) text() []byte {
	text := fmt.Appendf(nil, "%s %s %d %s", birthMagic, birthVersion, b.born, strconv.QuoteToASCII(b.cluster))
	return fmt.Appendf(text, " %08x\n", crc32.ChecksumIEEE(text))
}

// parseBirth is the inverse of [birth.text]. The error wraps [ErrDamaged] or
// [ErrForeign].
func parseBirth(text []byte) (birth, error) {
	line, whole := strings.CutSuffix(string(text), "\n")
	fields := strings.SplitN(line, " ", 3)
	if len(text) > birthBytesMax || !whole || len(fields) < 3 || fields[0] != birthMagic {
		return birth{}, fmt.Errorf("%w: %d bytes", ErrDamaged, len(text))
	}
	if fields[1] != birthVersion {
		return birth{}, fmt.Errorf("%w: its format is %q, this release knows %s", ErrForeign, fields[1], birthVersion)
	}
	var b birth
	number, rest, _ := strings.Cut(fields[2], " ")
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return birth{}, fmt.Errorf("%w: no name of a cluster", ErrDamaged)
	}
	if b.cluster, err = strconv.Unquote(quoted); err != nil {
		return birth{}, fmt.Errorf("%w: no name of a cluster", ErrDamaged)
	}
	if b.born, err = strconv.ParseInt(number, 10, 64); err != nil || b.born <= 0 {
		return birth{}, fmt.Errorf("%w: %q is no birth", ErrDamaged, number)
	}
	if string(b.text()) != string(text) {
		return birth{}, fmt.Errorf("%w: its check sum is wrong", ErrDamaged)
	}
	return b, nil
}

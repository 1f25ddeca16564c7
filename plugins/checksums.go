// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/config/field"
)

// maxChecksums is how many checksums a plugin may have.
const maxChecksums = 64

// checksumBytes is the length of a checksum.
const checksumBytes = 32

// Checksums are the SHA-256 checksums of the executables of a plugin, 64 hexadecimal digits each: one for each platform
// on which the nodes that share the configuration run. What runs has one of them. In a file they are a text or a list
// of texts.
type Checksums []string

// UnmarshalText reads one checksum; an empty text means none.
func (c *Checksums) UnmarshalText(text []byte) error {
	*c = nil
	if len(text) > 0 {
		*c = Checksums{string(text)}
	}
	return nil
}

// Match reports whether a checksum in hexadecimal digits is one of them.
func (c Checksums) Match(sum string) bool {
	return slices.ContainsFunc(c, func(one string) bool { return strings.EqualFold(one, sum) })
}

// validate returns the faults, each with its key: sha256, or that with the place in the list.
func (c Checksums) validate() error {
	var faults field.Faults
	faults.Refuse(c != nil && len(c) == 0, "sha256", "is an empty list: give the checksum of the file")
	faults.Refuse(len(c) > maxChecksums, "sha256", "has %d checksums, the limit is %d", len(c), maxChecksums)
	for i, one := range c[:min(len(c), maxChecksums)] {
		key := "sha256"
		if len(c) > 1 {
			key = fmt.Sprintf("sha256[%d]", i)
		}
		sum, err := hex.DecodeString(one)
		faults.Refuse(err != nil || len(sum) != checksumBytes, key, "%.100q is not 64 hexadecimal digits", one)
		faults.Refuse(err == nil && c[:i].Match(one), key, "%.100q is there twice", one)
	}
	return faults.Err()
}

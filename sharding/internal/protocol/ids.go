// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"unicode/utf8"
)

// EntityFault says what is wrong with the id of an entity; empty when it is valid.
func EntityFault(id string) string {
	switch {
	case id == "":
		return "the id is empty"
	case len(id) > MaxEntityBytes:
		return fmt.Sprintf("the id has %d bytes, at most %d are possible", len(id), MaxEntityBytes)
	case !utf8.ValidString(id):
		return "the id is not valid UTF-8"
	default:
		return ""
	}
}

// Clip shortens a name for an error: it may be of any length.
func Clip(name string) string {
	const most = 64
	if len(name) > most {
		return name[:most] + "..."
	}
	return name
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "strings"

// Clip returns the part of a text that can be sent: at most limit bytes, without bytes
// that are no UTF-8. A character that the limit cuts is left out.
func Clip(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

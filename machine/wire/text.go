// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "strings"

// Clip returns what of a text can travel: at most limit bytes of it, without those that
// are no UTF-8. A character that the limit cuts is left out.
func Clip(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

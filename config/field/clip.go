// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package field

import "strings"

// Clip cuts a text of unknown origin to 200 bytes, for a message of one line. It cuts no
// character in two.
func Clip(text string) string {
	const shown = 200
	if len(text) > shown {
		return strings.ToValidUTF8(text[:shown], "") + "..."
	}
	return text
}

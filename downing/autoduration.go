// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"encoding"
	"errors"
	"time"
)

// AutoDuration is a duration, or [Auto]. Its text is "auto" or that of a
// [time.Duration] above 0, such as "5s".
type AutoDuration time.Duration

// Auto leaves the choice to the program. It is the zero value.
const Auto AutoDuration = 0

var (
	_ encoding.TextMarshaler   = Auto
	_ encoding.TextUnmarshaler = (*AutoDuration)(nil)
)

// String returns "auto" or the duration.
func (d AutoDuration) String() string {
	if d == Auto {
		return "auto"
	}
	return time.Duration(d).String()
}

// MarshalText implements [encoding.TextMarshaler]. It never fails.
func (d AutoDuration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. It does not change d when it
// fails.
func (d *AutoDuration) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*d = Auto
		return nil
	}
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed <= 0 {
		return errors.New("neither auto nor a duration above 0, such as 5s") // Whoever reads a file puts the text before it.
	}
	*d = AutoDuration(parsed)
	return nil
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package manual describes settings for people: what each key means, which values it may
// have, and the variable of the environment that overrides it.
//
//	struct with defaults ── config.Settings ──▶ Describe ──▶ tables of Markdown, JSON
//
// The reference of the settings of Quorate is made with it. A program that has a section
// of its own in the same file prints the reference of that section in the same form:
//
//	settings, err := manual.Section("twins", "The twins that this program runs.", defaults)
//	...
//	fmt.Print(manual.Markdown(settings))
//
// The description of a setting is the tag meaning of its field, because comments are not in
// a built program.
//
// Everything here is a function of its input, and safe for concurrent use. Fields and
// columns may be added, and keep their meaning.
package manual

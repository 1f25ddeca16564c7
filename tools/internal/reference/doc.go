// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package reference is the reference of all settings: what each key means, and
// which values it may have.
//
//	Go structs ──── koanf, unit, range … tags ─┐
//	cluster.Default() ── defaults ─────────────┼─ Build ──▶ reference.json ── Read
//	comments of the fields ────────────────────┘               │
//	                                  text, Markdown, JSON Schema for editors
//
// The comments are not in a built program, so [Build] runs when code is
// generated (make generate), and its result is committed and embedded. A test
// builds it anew and fails when it differs, and when a setting lacks a comment,
// a number its unit, or a number or duration its range.
//
// Everything here is a function of its input, and safe for concurrent use.
package reference

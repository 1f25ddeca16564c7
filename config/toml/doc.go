// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package toml reads configuration files in TOML, those whose names end in ".toml":
//
//	loader := config.Loader{Environ: os.Environ(), Formats: []config.Format{toml.Format()}}
//
// A node is given it by the option cluster.WithFormat(toml.Format()). The rules are those of
// all formats, see package config: one document of at most 1 MiB, keys that stand once, and
// faults with their lines. Dates and times are refused, since no setting is one.
//
// It is a module of its own, because it brings a parser that a program with files in YAML
// has no use for. The package has no state, and may be used from any goroutine.
package toml

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package settings has examples of koanf's providers, by which a node can be configured beside its files: values of the
// program (confmap, structs, rawbytes), files (file, fs), flags (basicflag, posflag), the environment under names of
// one's own (env), an object of S3 (s3), and an instance of koanf. Each lays its settings over those before it; package
// config says which rules hold, and has Flat and Document for stores of keys.
//
// The examples load the configuration and start nothing: the same options start a node by cluster.Start.
package settings

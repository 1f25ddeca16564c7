// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package settings has an example for each provider of koanf by which a node can be configured beside its files:
// values of the program (confmap, structs, rawbytes), files (file, fs), flags (basicflag, posflag), the environment
// under names of one's own (env), and stores (etcd, Consul, S3). Each lays its settings over those before it; package
// config says which rules hold.
//
// Stores of keys are of two sorts. Where each setting has a key, [config.Flat] makes groups of them; where one key
// holds a whole file, [config.Document] takes it for a parser. The examples load the configuration and start nothing:
// the same options start a node by cluster.Start.
package settings

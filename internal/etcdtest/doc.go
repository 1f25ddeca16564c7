// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package etcdtest runs the tests of discovery/etcd, downing/lease/etcd and sharding/state/etcd
// that need a real etcd, the embedded server, on loopback; and those of config with koanf's providers
// of etcd and, against a double, of Consul.
//
// It is a module of its own, outside of the workspace and without releases: the server
// brings more than 40 modules, some of them in versions of their own, which neither the
// users of these nor the other modules of the workspace should have.
package etcdtest

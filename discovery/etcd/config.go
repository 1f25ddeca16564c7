// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"strings"
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery/etcd/etcdapi"
)

const (
	maxNameBytes = 128
	// maxAnswerBytes is the longest answer: 10,000 entries of 800 bytes.
	maxAnswerBytes = 8 << 20
)

// Config is what an operator sets. The zero value is not valid; start from [Default]
// and give the endpoints.
type Config struct {
	// Config holds where etcd is, the user and the files of certificates, and the time limit of
	// a request.
	etcdapi.Config `koanf:",squash"`

	// Prefix begins the keys of all nodes, and is followed by the name of the service and
	// the address. The prefix begins and ends with a slash. Clusters that share an etcd need
	// different prefixes or services.
	Prefix string `koanf:"prefix"`

	// TTL is how long a node that has died stays registered, from 3 seconds to 5
	// minutes, in whole seconds. With a short time a node vanishes while etcd elects a
	// leader, which takes a second or more.
	TTL time.Duration `koanf:"ttl" range:"3s..5m"`

	// Interval is the time between two questions to etcd whether anything has changed, while
	// there are lookups: from 50 milliseconds to a minute.
	Interval time.Duration `koanf:"interval" range:"50ms..1m"`
}

// Default returns the settings without endpoints: keys below /quorate/, which vanish 15
// seconds after their node, and a look every second.
func Default() Config {
	return Config{Config: etcdapi.Default(), Prefix: "/quorate/", TTL: 15 * time.Second, Interval: time.Second}
}

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Add(c.Config.Validate())
	faults.Refuse(!isPrefix(c.Prefix), "prefix", "%q is not of the form /quorate/", field.Clip(c.Prefix))
	faults.Add(field.Ranges(c))
	faults.Relate(c.TTL%time.Second != 0, "ttl", "ttl", "%v is not in whole seconds", c.TTL)
	return faults.Err()
}

func isPrefix(text string) bool {
	return len(text) <= maxNameBytes && strings.HasPrefix(text, "/") && strings.HasSuffix(text, "/") &&
		strings.IndexFunc(text, func(r rune) bool { return r != '/' && notInName(r) }) < 0
}

// isName reports whether a text may be a part of a key, between slashes.
func isName(text string) bool {
	return text != "" && len(text) <= maxNameBytes && strings.IndexFunc(text, notInName) < 0
}

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}

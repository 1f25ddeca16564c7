// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"strings"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery/etcd/etcdapi"
)

const (
	maxPrefixBytes = 128
	// maxAnswerBytes is the longest answer: one key and its value.
	maxAnswerBytes = 1 << 20
)

// Config is what an operator sets. The zero value is not valid; start from [Default] and give
// the endpoints.
type Config struct {
	// Config holds where etcd is, the user and the files of certificates, and the time limit of
	// one call. The limit of a keeper counts as well.
	etcdapi.Config `koanf:",squash"`

	// Prefix begins the keys of all leases, and is followed by the name of the lease. The
	// prefix begins and ends with a slash. Clusters that share an etcd need different
	// prefixes or names.
	Prefix string `koanf:"prefix"`
}

// Default returns the settings without endpoints: keys below /quorate/leases/, and 3 seconds for
// a call.
func Default() Config { return Config{Config: etcdapi.Default(), Prefix: "/quorate/leases/"} }

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Add(c.Config.Validate())
	faults.Refuse(!isPrefix(c.Prefix), "prefix", "%q is not of the form /quorate/leases/", field.Clip(c.Prefix))
	return faults.Err()
}

func isPrefix(text string) bool {
	return len(text) <= maxPrefixBytes && strings.HasPrefix(text, "/") && strings.HasSuffix(text, "/") &&
		strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

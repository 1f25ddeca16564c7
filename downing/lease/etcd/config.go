// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"strings"
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery/httpapi"
)

const (
	endpointsMax   = 16
	prefixBytesMax = 128
	leastRequest   = 100 * time.Millisecond
	mostRequest    = time.Minute
)

// Config is what an operator sets. The zero value is not valid; start from [Default] and give
// the endpoints.
type Config struct {
	// Endpoints are the URLs of the members of etcd, such as "https://10.0.0.1:2379", at least
	// one and at most 16.
	Endpoints []string `koanf:"endpoints"`

	// Prefix begins the keys of all leases, and is followed by the name of the lease. The
	// prefix begins and ends with a slash. Clusters that share an etcd need different
	// prefixes or names.
	Prefix string `koanf:"prefix"`

	// Username is the user of etcd. Empty: none, for an etcd without users or with users known
	// by certificates.
	Username string `koanf:"username"`

	// PasswordFile names the file of the user's password.
	PasswordFile string `koanf:"password-file"`

	// CAFile names the file of the certificates by which etcd is known, in PEM form. Empty: the
	// certificates of the system.
	CAFile string `koanf:"ca-file"`

	// CertFile and KeyFile name the files of the certificate and the key of the node, in PEM
	// form. Both must be given, or neither.
	CertFile string `koanf:"cert-file"`
	KeyFile  string `koanf:"key-file"`

	// RequestTimeout is how long one call may take, from 100 milliseconds to a minute. The
	// limit of a keeper counts as well.
	RequestTimeout time.Duration `koanf:"request-timeout" range:"100ms..1m"`
}

// Default returns the settings without endpoints: keys below /quorate/leases/, and 3 seconds for
// a call.
func Default() Config { return Config{Prefix: "/quorate/leases/", RequestTimeout: 3 * time.Second} }

// Paths returns pointers to the names of files, for a caller that makes these relative to a
// directory.
func (c *Config) Paths() []*string {
	return []*string{&c.PasswordFile, &c.CAFile, &c.CertFile, &c.KeyFile}
}

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(len(c.Endpoints) == 0 || len(c.Endpoints) > endpointsMax, "endpoints",
		"%d are not in the range from 1 to %d", len(c.Endpoints), endpointsMax)
	for _, endpoint := range c.Endpoints {
		faults.Add(c.checkEndpoint(endpoint))
	}
	faults.Refuse(!isPrefix(c.Prefix), "prefix", "%q is not of the form /quorate/leases/", clip(c.Prefix))
	faults.Refuse((c.Username == "") != (c.PasswordFile == ""), "password-file", "a user and a password belong together")
	faults.Refuse((c.CertFile == "") != (c.KeyFile == ""), "key-file", "a certificate and a key belong together")
	faults.Refuse(c.RequestTimeout < leastRequest || c.RequestTimeout > mostRequest, "request-timeout",
		"%v is not in the range from %v to %v", c.RequestTimeout, leastRequest, mostRequest)
	return faults.Err()
}

// checkEndpoint refuses what is no URL of a member of etcd, and a URL to which a password would
// go where others can read it on the way.
func (c Config) checkEndpoint(endpoint string) error {
	u, err := httpapi.ParseURL("endpoints", endpoint)
	switch {
	case err != nil:
		return err
	case u.Path != "":
		return field.Errorf("endpoints", "%q is not of the form https://host:port", clip(endpoint))
	case u.Scheme == "http" && c.PasswordFile != "" && !httpapi.IsLocal(u):
		return field.Errorf("endpoints", "%q is not encrypted, the password could be read on the way: write https", clip(endpoint))
	case u.Scheme == "http" && c.CAFile+c.CertFile != "":
		return field.Errorf("endpoints", "%q is not encrypted, and certificates are given: write https", clip(endpoint))
	}
	return nil
}

func isPrefix(text string) bool {
	return len(text) <= prefixBytesMax && strings.HasPrefix(text, "/") && strings.HasSuffix(text, "/") &&
		strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// clip cuts a text of unknown origin, for a message of one line.
func clip(text string) string {
	const shown = 200
	if len(text) > shown {
		return text[:shown] + "..."
	}
	return text
}

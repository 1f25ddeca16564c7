// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/quorate/quorate/config/field"
)

// The values of [Config.Family].
const (
	FamilyBoth = "both"
	FamilyIPv4 = "ipv4"
	FamilyIPv6 = "ipv6"
)

// Config is the section "discovery-dns" of a node. The zero value is not valid;
// start from [Default].
type Config struct {
	// Servers are the servers to ask, "address:port" each, in order, at most 8. Empty:
	// the servers in the file ResolvConf.
	Servers []string `koanf:"servers"`

	// ResolvConf is the path of the file with the servers, the search list and the
	// options of this machine, in the form of resolv.conf(5). Of the options, ndots and
	// use-vc count. Empty: no file is read; Servers must be given, and names be complete.
	ResolvConf string `koanf:"resolv-conf"`

	// QueryTimeout is how long one server may take for one question before the next server
	// is asked, above zero and at most 1 minute. The limit of the whole lookup counts
	// besides: if QueryTimeout is too long, no time is left for the second server.
	QueryTimeout time.Duration `koanf:"query-timeout" range:">0s..1m"`

	// Rounds is how often the servers are asked, all in turn, until one answers, from 1
	// to 5.
	Rounds int `koanf:"rounds" unit:"rounds" range:"1..5"`

	// MinTTL is for how long an answer is kept at least, whatever time to live its
	// records have, from 0 to 24 hours. It protects servers of zones whose records have 0.
	MinTTL time.Duration `koanf:"min-ttl" range:"0s..24h"`

	// MaxTTL is for how long an answer is kept at most, from MinTTL to 24 hours. A change
	// of the records is seen after that time at the latest.
	MaxTTL time.Duration `koanf:"max-ttl" range:"0s..24h"`

	// MaxNegativeTTL is for how long the answer that there are no records is kept at most,
	// from MinTTL to 24 hours. Zones say minutes or hours, which is too long for a node that
	// starts and waits for the records of its peers.
	MaxNegativeTTL time.Duration `koanf:"max-negative-ttl" range:"0s..24h"`

	// Family says which addresses count: "both", "ipv4" or "ipv6". With both, a lookup that
	// gets an answer for one family only is an error.
	Family string `koanf:"family" oneof:"both|ipv4|ipv6"`

	// Port is the port of contact points that are found by their addresses alone, from 0 to
	// 65535; 0: the port is not known. Services (SRV) have ports of their own.
	Port int `koanf:"port" unit:"port number" range:"0..65535"`
}

// Default returns the settings that ask the servers of this machine: 1 second for a
// question, 2 rounds, answers kept from 1 second to 5 minutes, 5 seconds for nothing.
func Default() Config {
	return Config{
		ResolvConf:     "/etc/resolv.conf",
		QueryTimeout:   time.Second,
		Rounds:         2,
		MinTTL:         time.Second,
		MaxTTL:         5 * time.Minute,
		MaxNegativeTTL: 5 * time.Second,
		Family:         FamilyBoth,
	}
}

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(len(c.Servers) == 0 && c.ResolvConf == "", "servers", "none given, and no resolv-conf either")
	faults.Refuse(len(c.Servers) > maxServers, "servers", "%d are more than %d", len(c.Servers), maxServers)
	for i, text := range c.Servers {
		if _, err := parseServer(text); err != nil {
			faults.Add(field.Errorf("servers", "entry %d: %w", i, err))
		}
	}
	faults.Add(field.Ranges(c))
	faults.Relate(c.MaxTTL < c.MinTTL, "max-ttl", "min-ttl", "%v is below min-ttl, %v", c.MaxTTL, c.MinTTL)
	faults.Relate(c.MaxNegativeTTL < c.MinTTL, "max-negative-ttl", "min-ttl", "%v is below min-ttl, %v", c.MaxNegativeTTL, c.MinTTL)
	faults.Refuse(c.Family != FamilyBoth && c.Family != FamilyIPv4 && c.Family != FamilyIPv6,
		"family", "%q is none of %s, %s, %s", c.Family, FamilyBoth, FamilyIPv4, FamilyIPv6)
	return faults.Err()
}

// parseServer reads the address of a server. A name would need a server to resolve it.
func parseServer(text string) (netip.AddrPort, error) {
	server, err := netip.ParseAddrPort(text)
	switch {
	case err != nil:
		return netip.AddrPort{}, fmt.Errorf("%s is not an IP address with a port, such as 10.0.0.10:53 or [fd00::10]:53", shown(text))
	case server.Port() == 0:
		return netip.AddrPort{}, errors.New("the port is 0")
	}
	return server, nil
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package multicast

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/quorate/quorate/config/field"
)

// Config is the section "discovery-multicast" of a node. The zero value is not
// valid; start from [Default].
type Config struct {
	// Group is the multicast address and port of the group, of IPv4 or IPv6, the same on
	// all machines. Groups that begin with 239.255 or ff02 do not leave the network.
	Group string `koanf:"group"`

	// Interface is the name of the network interface, such as "eth0" or "lo". Empty: the
	// operating system chooses one, for groups of IPv6 often none.
	Interface string `koanf:"interface"`

	// Window is for how long answers are collected, above zero and at most 10 seconds.
	// Every lookup takes that time. If it is too short, slow nodes are left out.
	Window time.Duration `koanf:"window" range:">0s..10s"`

	// Service is the name for which this node answers with what Announce lists, at most 200
	// bytes. It must be set where Announce lists something.
	Service string `koanf:"service"`

	// Announce are the contact points with which this node answers, at most 16:
	// "host:port", or ":port" at the address from which the answer comes. Empty: the
	// address of the node, for the service that the node looks up.
	Announce []string `koanf:"announce"`
}

// Default returns settings for queries on the interface that the operating system chooses, a
// window of half a second, and nothing to announce.
func Default() Config {
	return Config{Group: "239.255.71.82:7947", Window: 500 * time.Millisecond}
}

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	if _, err := c.group(); err != nil {
		faults.Add(field.Errorf("group", "%w", err))
	}
	faults.Add(field.Ranges(c))
	faults.Refuse(len(c.Service) > maxServiceBytes, "service", "it has %d bytes, more than %d", len(c.Service), maxServiceBytes)
	faults.Refuse(c.Service == "" && len(c.Announce) > 0, "service", "none given, though something is announced")
	faults.Refuse(len(c.Announce) > maxAnnounce, "announce", "%d are more than %d", len(c.Announce), maxAnnounce)
	for i, text := range c.Announce {
		if err := checkAnnounced(text); err != nil {
			faults.Add(field.Errorf("announce", "entry %d: %w", i, err))
		}
	}
	faults.Refuse(answerBytes(c.Announce) > packetBytes, "announce",
		"they make an answer of %d bytes, more than %d", answerBytes(c.Announce), packetBytes)
	return faults.Err()
}

func (c Config) group() (netip.AddrPort, error) {
	group, err := netip.ParseAddrPort(c.Group)
	switch {
	case err != nil:
		return netip.AddrPort{}, fmt.Errorf("%q is not a multicast address with a port", c.Group)
	case !group.Addr().IsMulticast() || group.Addr().Is4In6() || group.Addr().Zone() != "":
		return netip.AddrPort{}, fmt.Errorf("%v is not a multicast address", group.Addr())
	case group.Port() == 0:
		return netip.AddrPort{}, fmt.Errorf("the port of %q is 0", c.Group)
	}
	return group, nil
}

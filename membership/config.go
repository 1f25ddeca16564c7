// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"errors"
	"strings"

	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/transport"

	"github.com/quorate/quorate/config/field"
)

// The configuration is made of the sections of this package and of others ([Config]), has
// two sets of defaults ([Default], [Fast]), and is validated section by section and then
// across sections.

// Config is everything that an operator may set. Its fields are the sections of a
// configuration file. Start from [Default].
type Config struct {
	Cluster    ClusterConfig    `koanf:"cluster"`
	Node       NodeConfig       `koanf:"node"`
	Membership ProtocolConfig   `koanf:"membership"`
	Transport  transport.Config `koanf:"transport"`
	Downing    downing.Config   `koanf:"downing"`
}

// ClusterConfig names the cluster.
type ClusterConfig struct {
	// Name is the name of the cluster, 1 to 255 bytes. A node with another name is
	// refused at the first contact. It must be set.
	Name string `koanf:"name" required:"yes"`
}

// NodeConfig describes one node.
type NodeConfig struct {
	// Address is the "host:port" under which the other nodes reach this one.
	// It must be set, and must not be a wildcard: it is the node's name.
	Address string `koanf:"address" required:"yes"`

	// Roles are free labels, at most 64 of at most 128 bytes, in any order.
	// They cannot change while the node lives.
	Roles []string `koanf:"roles"`

	// Zone says where the node stands, for strategies that look at it. It is only a
	// label: leadership and votes do not depend on it. Empty is a zone like any other.
	Zone string `koanf:"zone"`

	// AppVersion is the version of the deployment. New shards prefer the
	// highest version, so that they are not moved twice in a rolling update. It is
	// one to three numbers joined by dots, possibly with a "v" before and a qualifier
	// after: 1.10.0, v1.10.0-rc2, 1.10.0+3-1a2b3c4. Empty is older than every version.
	AppVersion string `koanf:"app-version"`

	// DataDir is a directory in which the node keeps what must survive its process: the
	// voters of its cluster, so that no second cluster is founded beside it, and the
	// birth of the cluster, so that the epochs of shards grow over a restart of all nodes
	// even if a clock was set back meanwhile. It is made if it is not there, and is for
	// one node at a time. It is never copied or restored from a backup: a node whose
	// directory was deleted comes back without a vote. Empty means no directory: a
	// restart forgets, only the list of seed nodes keeps a second cluster from being
	// founded, and epochs rest on the wall clock.
	DataDir string `koanf:"data-dir"`

	// CycleCounter lets the node spare readings of its clock before messages, while the
	// cycle counter of the processor shows that 20 µs have not passed since the last one.
	// Where the kernel does not compute its clocks from that counter the node reads the
	// clock before each message, whatever is set here.
	CycleCounter bool `koanf:"cycle-counter"`
}

// ProtocolConfig is the section of the membership protocol.
type ProtocolConfig struct {
	// SeedNodes are the addresses that are asked to let this node join, the same on all
	// nodes. If no node remembers a cluster, more than half of them found one: of three
	// any two, of two both, one alone at once. Without seed nodes the node does not join
	// until [Node.Join] is called.
	SeedNodes []string `koanf:"seed-nodes"`

	// Discovery says how contact points are looked up, in place of seed nodes.
	Discovery DiscoveryConfig `koanf:"discovery"`

	protocol.Config `koanf:",squash"`
}

// Default returns the configuration with safe values for machines in one data center. The
// name of the cluster and the node's address have no default.
func Default() Config {
	return Config{
		Node:       NodeConfig{AppVersion: "0.0.0", CycleCounter: true},
		Membership: ProtocolConfig{Config: protocol.Default(), Discovery: DiscoveryConfig{Config: bootstrap.Default()}},
		Transport:  transport.Default(),
		Downing:    downing.Default(),
	}
}

// Fast returns the configuration of [Default] with shorter times of failure detection: a
// node that died is replaced within about 3 seconds. It is for machines and networks
// without pauses near a second.
func Fast() Config {
	c := Default()
	c.Membership.Config = protocol.Fast()
	return c
}

// Validate reports every fault in one error. Each fault of one key has a method Field
// that returns the key.
func (c Config) Validate() error {
	faults := []error{
		field.Within("cluster", c.Cluster.Validate()), field.Within("node", c.Node.Validate()),
		field.Within("membership", c.Membership.Validate()), field.Within("transport", c.Transport.Validate()),
		field.Within("downing", c.Downing.Validate()), c.ValidateAcross(),
	}
	return errors.Join(faults...)
}

// ValidateAcross reports only what does not fit together across the sections,
// for callers that validate each section themselves.
func (c Config) ValidateAcross() error {
	return field.Relate(field.Within("downing", c.Downing.ValidateFence(c.Membership.Fence)), "membership.fence")
}

// Validate reports a missing or overlong name.
func (c ClusterConfig) Validate() error {
	const maxNameBytes = 255
	switch {
	case c.Name == "":
		return field.Errorf("name", "must be set: 1 to %d bytes that all nodes of the cluster share", maxNameBytes)
	case len(c.Name) > maxNameBytes:
		return field.Errorf("name", "has %d bytes, at most %d are possible", len(c.Name), maxNameBytes)
	}
	return nil
}

// Validate reports every fault of the section.
func (c NodeConfig) Validate() error {
	var faults field.Faults
	if c.Address == "" {
		faults.Add(field.Errorf("address", `must be set: the "host:port" under which other nodes reach this one`))
	} else if _, err := gossip.ParseAddress(c.Address); err != nil {
		faults.Add(worded("address", err))
	}
	faults.Refuse(len(c.Roles) > gossip.MaxRoles, "roles", "%d are too many, at most %d are possible", len(c.Roles), gossip.MaxRoles)
	label := func(key string, m gossip.Member) {
		m.Node = gossip.NodeID{Address: gossip.Address{Host: "localhost", Port: 1}, UID: 1} // Any node will do: only the labels are checked.
		m.Status, m.Protocol = gossip.Joining, protocolRange
		faults.Add(worded(key, m.Validate()))
	}
	label("zone", gossip.Member{Zone: c.Zone})
	if err := gossip.CheckVersion(c.AppVersion); err != nil {
		faults.Add(field.Errorf("app-version", "%w", err))
	} else {
		label("app-version", gossip.Member{AppVersion: c.AppVersion})
	}
	for _, role := range c.Roles {
		label("roles", gossip.Member{Roles: []string{role}})
	}
	return faults.Err()
}

// worded returns the fault of a value that package gossip refuses, in words about that value alone; nil for nil.
func worded(key string, err error) error {
	if err == nil {
		return nil
	}
	reason := strings.TrimPrefix(err.Error(), "gossip: ")
	if invalid, ok := errors.AsType[*gossip.InvalidError](err); ok {
		reason = invalid.Detail
	}
	return &field.Error{Key: key, Reason: reason, Err: err}
}

// Validate reports every fault of the section.
func (c ProtocolConfig) Validate() error {
	var faults field.Faults
	faults.Add(c.Config.Validate())
	_, err := c.seeds()
	for _, fault := range field.Parts(err) {
		faults.Add(worded("seed-nodes", fault))
	}
	faults.Add(field.Within("discovery", c.Discovery.Validate()))
	if faults.Err() == nil {
		faults.Add(c.validateSeeds())
	}
	return faults.Err()
}

// seeds parses the seed nodes.
func (c ProtocolConfig) seeds() ([]gossip.Address, error) { return parseAddresses(c.SeedNodes) }

// OwnEntries says which entries of membership.seed-nodes name the node itself in another form than node.address
// does, in the words in which the node says so while it waits. It is no fault of a section: whether two names are of
// one host is known where they are resolved, by sameHost, which is asked for hosts that differ. Nil if there are none,
// if an address is malformed, and where membership.discovery looks contact points up, since that knows the node
// by any form.
func (c Config) OwnEntries(sameHost func(entry, own string) bool) []error {
	own, err := gossip.ParseAddress(c.Node.Address)
	seeds, errs := c.Membership.seeds()
	if err != nil || errs != nil || c.Membership.Discovery.Looks() {
		return nil
	}
	var found []error
	for _, entry := range seeds {
		if entry != own && entry.Port == own.Port && sameHost(entry.Host, own.Host) {
			found = append(found, field.Errorf("membership.seed-nodes", "%v %s", entry, protocol.OwnEntry(own)))
		}
	}
	return found
}

// parseAddresses parses all texts and reports every wrong one.
func parseAddresses(texts []string) ([]gossip.Address, error) {
	addresses := make([]gossip.Address, 0, len(texts))
	var faults []error
	for _, text := range texts {
		a, err := gossip.ParseAddress(text)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		addresses = append(addresses, a)
	}
	return addresses, errors.Join(faults...)
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/cluster/telemetry"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/transport"

	"github.com/quorate/quorate/config/field"
)

// Config is a whole configuration file, a field for each section.
type Config struct {
	// Cluster names the cluster. It is the same on all nodes.
	Cluster membership.ClusterConfig `koanf:"cluster"`

	// Node describes this node: its address, and labels that others see.
	Node membership.NodeConfig `koanf:"node"`

	// Membership says how nodes join, gossip, find failures and leave.
	Membership membership.ProtocolConfig `koanf:"membership"`

	// Transport says how nodes connect to one another.
	Transport transport.Config `koanf:"transport"`

	// Downing says who must go after a partition, and when that is decided.
	Downing downing.Config `koanf:"downing"`

	// Sharding says how entities are spread over the nodes, and bounds what waits
	// for them.
	Sharding sharding.Config `koanf:"sharding"`

	// Management is the HTTP interface of the node.
	Management management.Config `koanf:"management"`

	// Telemetry says where the metrics of the node go.
	Telemetry telemetry.Config `koanf:"telemetry"`

	// Plugins are strategies in other processes, each under the name by which
	// downing.strategy or sharding.allocation.strategy chooses it. Those that are not
	// chosen are not started. Of the one that is, everything may change while the
	// node runs.
	Plugins map[string]plugins.Config `koanf:"plugins" reload:"yes"`

	// Reload says how the node takes over changes of its files.
	Reload ReloadConfig `koanf:"reload"`
}

// Default returns the configuration with the default of every setting. The
// name of the cluster and the address of the node have none.
func Default() Config {
	m := membership.Default()
	return Config{
		Cluster: m.Cluster, Node: m.Node, Membership: m.Membership, Transport: m.Transport, Downing: m.Downing,
		Sharding: sharding.Default(), Management: management.Default(), Telemetry: telemetry.Default(),
	}
}

// membership returns the part that makes a node a member.
func (c Config) membership() membership.Config {
	return membership.Config{Cluster: c.Cluster, Node: c.Node, Membership: c.Membership, Transport: c.Transport, Downing: c.Downing}
}

// Validate reports what does not fit together across the sections. Package
// config, which calls it, asks each section by itself; so does [Start].
func (c Config) Validate() error {
	return errors.Join(c.membership().ValidateAcross(), c.validateTelemetry(), c.validatePlugins())
}

// validateTelemetry refuses metrics that nobody could fetch.
func (c Config) validateTelemetry() error {
	if c.Telemetry.Metrics == telemetry.Prometheus && c.Management.Address == "" {
		return field.Errorf("telemetry.metrics", "prometheus fetches from the HTTP interface of the node: set management.address")
	}
	return nil
}

// check reports every fault of a configuration that was made or changed in
// code.
func (c Config) check() error {
	section := func(name string, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	faults := []error{
		c.membership().Validate(), section("sharding", c.Sharding.Validate()), section("management", c.Management.Validate()),
		section("telemetry", c.Telemetry.Validate()), c.validateTelemetry(), c.validatePlugins(),
	}
	for _, name := range slices.Sorted(maps.Keys(c.Plugins)) {
		faults = append(faults, section("plugins."+name, c.Plugins[name].Validate()))
	}
	return errors.Join(faults...)
}

// Load reads and merges configuration files and the environment. The error is
// a list with every fault, each with file, line, key and cure. Paths of files
// in the result are absolute.
func Load(paths ...string) (Config, error) {
	file, err := config.Load(paths...)
	if err != nil {
		return Config{}, err
	}
	return decode(file)
}

// decode fills a configuration from what was read.
func decode(file *config.File) (Config, error) {
	c := Default()
	if err := file.Decode("", &c); err != nil {
		return Config{}, err
	}
	c.Node.DataDir = file.Resolve(c.Node.DataDir)
	for _, tls := range []*transport.TLSFiles{&c.Transport.TLS, &c.Management.TLS} {
		for _, path := range tls.Paths() {
			*path = file.Resolve(*path)
		}
	}
	for name, p := range c.Plugins {
		p.Path = file.Resolve(p.Path)
		c.Plugins[name] = p
	}
	return c, nil
}

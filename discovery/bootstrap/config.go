// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"time"

	"github.com/quorate/quorate/config/field"
)

// MaxPoints is the largest number of contact points among which a cluster may be formed.
// Of a larger answer the first MaxPoints are asked, and no cluster is formed: a name with
// more addresses is probably that of another service.
const MaxPoints = 1000

// maxServiceBytes bounds the name of a service, as the contract with plugins does.
const maxServiceBytes = 256

// Config says when a node without a cluster looks up contact points, and when it may
// form a cluster with them. The zero value is not valid; start from [Default].
type Config struct {
	// Service is the name of the service that is looked up, up to 256 bytes. Empty: the
	// name of the cluster.
	Service string `koanf:"service"`

	// PortName is the name of the port of the service on which nodes listen, or empty.
	PortName string `koanf:"port-name"`

	// Protocol is the protocol of that port.
	Protocol string `koanf:"protocol"`

	// DefaultPort is the port of contact points that were found without a port. Zero: the
	// port of the node's own address.
	DefaultPort int `koanf:"default-port" unit:"port" range:"0..65535"`

	// FilterOnDefaultPort says that of a host which was found with several ports, DefaultPort among them, that one
	// alone is a contact point: for sources that name ports of other services too, and cannot be asked by PortName.
	// Not for hosts with several nodes.
	FilterOnDefaultPort bool `koanf:"filter-on-default-port"`

	// Interval is the time between two lookups, to which up to a fifth is added at random.
	// Each lookup in a row that fails or finds nothing doubles the time, up to IntervalMax.
	Interval time.Duration `koanf:"interval" range:"10ms..1h"`

	// IntervalMax is the longest time between two lookups, not below Interval.
	IntervalMax time.Duration `koanf:"exponential-backoff-max" range:"10ms..1h"`

	// ResolveTimeout is how long each method may take for a lookup.
	ResolveTimeout time.Duration `koanf:"resolve-timeout" range:"10ms..1h"`

	// StableMargin is for how long the set of contact points must have been unchanged
	// before a cluster may be formed. The set is what was found within this time: a source may name another part of all
	// each time. If it is shorter than the time in which all nodes of a
	// first start are found, the first nodes form the cluster without waiting for the rest.
	StableMargin time.Duration `koanf:"stable-margin" range:"0s..1h"`

	// RequiredContactPoints is how many contact points, this node among them, must
	// answer and vote before a cluster is formed where no node remembers one, 1 to 1000.
	// It must be more than half of the nodes of a first start, or there may be two clusters.
	RequiredContactPoints int `koanf:"required-contact-point-nr" unit:"contact points" range:"1..1000"`

	// ContactAll says that all contact points that were found must answer before a cluster
	// is formed, and not only the number that is required.
	ContactAll bool `koanf:"contact-with-all-contact-points"`

	// FormNewCluster says whether this node may form a cluster where no node remembers
	// one. Off: the node joins the cluster of others, and votes for others.
	FormNewCluster bool `koanf:"form-new-cluster"`
}

// Default returns the settings: a lookup each second, a margin of five seconds, and two
// contact points.
func Default() Config {
	return Config{
		Protocol: "tcp", Interval: time.Second, IntervalMax: 15 * time.Second, ResolveTimeout: 3 * time.Second,
		StableMargin: 5 * time.Second, RequiredContactPoints: 2, ContactAll: true, FormNewCluster: true,
	}
}

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Add(field.Ranges(c))
	faults.Relate(c.IntervalMax < c.Interval, "exponential-backoff-max", "interval", "%v is below interval %v", c.IntervalMax, c.Interval)
	faults.Refuse(len(c.Service) > maxServiceBytes, "service", "%d bytes are more than %d", len(c.Service), maxServiceBytes)
	return faults.Err()
}

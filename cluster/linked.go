// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/cluster/telemetry"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/field"
)

// linkable is a configuration that is checked for what the program must link.
type linkable struct {
	Config `koanf:",squash"`

	options *options
}

// Validate reports what does not fit together across the sections, and what the program
// did not link.
func (l *linkable) Validate() error {
	return errors.Join(l.Config.Validate(), l.options.linked(l.Config))
}

// linked reports what a configuration needs and the program did not link.
func (o *options) linked(c Config) error {
	var faults []error
	for _, p := range parts() {
		if p.linked != nil {
			faults = append(faults, p.linked(o, c))
		}
	}
	return errors.Join(faults...)
}

// notLinked is the fault of a key that needs a package which the program did not import
// and give to the node by an option.
func notLinked(key, what, path, option string) error {
	return &field.Error{
		Key: key, Err: config.ErrNotLinked,
		Reason: fmt.Sprintf("%s is %v: import github.com/quorate/quorate/%s, and start the node with the option %s", what, config.ErrNotLinked, path, option),
	}
}

// linkedTelemetry reports metrics that nothing in the program can serve.
func (o *options) linkedTelemetry(c Config) error {
	if c.Telemetry.Metrics != telemetry.Prometheus || o.metrics != nil {
		return nil
	}
	return notLinked("telemetry.metrics", telemetry.Prometheus, "cluster/prometheus", "cluster.WithMetrics(prometheus.Endpoint())")
}

// shipped are the names of the methods of discovery that this project has and not every
// program links: each is a package of its name below discovery.
func shipped() []string {
	return []string{"consul", "dns", "etcd", "file", "kubernetes", "multicast"}
}

// linkedDiscovery reports methods of discovery that the program could have linked and did
// not. Their names are taken: a method of the program's own has another one, or is given
// by [WithDiscovery] too.
func (o *options) linkedDiscovery(c Config) error {
	var faults []error
	for _, name := range c.Membership.Discovery.Methods {
		given := slices.ContainsFunc(o.methods, func(m linkedMethod) bool { return m.called() == name })
		if given || !slices.Contains(shipped(), name) {
			continue
		}
		option := fmt.Sprintf("cluster.WithDiscovery(%[1]s.Method, %[1]s.Default(), func(c %[1]s.Config) (discovery.Discovery, error) { return %[1]s.New(c) })", name)
		faults = append(faults, notLinked("membership.discovery.methods", "the method "+name, "discovery/"+name, option))
	}
	return errors.Join(faults...)
}

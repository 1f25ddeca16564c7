// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/cluster/telemetry"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery"
)

// linkCheck is a configuration that is checked for what the program must link, and has not.
type linkCheck struct {
	Config `koanf:",squash"`

	options *options
}

// Validate reports what does not fit together across the sections, and what the program
// did not link.
func (l *linkCheck) Validate() error {
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

// linkedData reports durable keys for which the program has no store.
func (o *options) linkedData(c Config) error {
	if key := c.durableKey(); key != "" && o.store == nil {
		return notLinked(key, "the store of durable keys", "ddata/durable", "cluster.WithStore(durable.OpenIn)")
	}
	return nil
}

// linkedDiscovery reports methods of discovery that the configuration names and that are
// neither linked by the program nor plugins. Which methods the project has is not known here:
// a name that nobody gave may be that of a package below discovery, or a mistake.
func (o *options) linkedDiscovery(c Config) error {
	linked := append(namesOf(o.methods), discovery.MethodStatic)
	slices.Sort(linked)
	var faults []error
	for _, name := range c.Membership.Discovery.Methods {
		_, plugin := c.Plugins[name]
		here := slices.Contains(linked, name)
		switch {
		case plugin && here && name != discovery.MethodStatic: // The section plugins reports a plugin with the name of a built-in method.
			faults = append(faults, field.Errorf("plugins."+name, "the program links a method of that name; give the plugin another one"))
		case name == "" || here || plugin || slices.Contains(o.own.Strategies, name): // The section reports an empty name.
		default:
			faults = append(faults, o.unknown(linkedMethods(), name, linked))
		}
	}
	return errors.Join(faults...)
}

// linkedKind is a kind of strategies that a program links by an option.
type linkedKind struct {
	what   string // as in "the store"
	folder string // below which the project has packages of it
	key    string // under which one is named
	call   string // the option, with %[1]s for the name of the package
}

// linkedMethods are the methods of discovery, which are chosen by membership.discovery.methods.
func linkedMethods() linkedKind {
	return linkedKind{
		what: "method", folder: "discovery", key: keyMethods,
		call: "cluster.WithDiscovery(%[1]s.Method, %[1]s.Default(), func(c %[1]s.Config) (discovery.Discovery, error) { return %[1]s.New(c) })",
	}
}

// unknown is the fault of a name that is none of the linked ones.
func (o *options) unknown(l linkedKind, name string, linked []string) error {
	all := `"` + strings.Join(linked, `", "`) + `"`
	if o.own.Whole {
		return field.Errorf(l.key, "the %[1]s %[2]q is unknown, there are %[3]s; a %[1]s of the program itself is given to config check by --own", l.what, name, all)
	}
	return &field.Error{
		Key: l.key, Err: config.ErrNotLinked,
		Reason: fmt.Sprintf("the %[1]s %[2]q is %[3]v, which links %[4]s: if it is a %[1]s of this project, "+
			"import github.com/quorate/quorate/%[5]s/%[2]s, and start the node with the option %[6]s",
			l.what, name, config.ErrNotLinked, all, l.folder, fmt.Sprintf(l.call, name)),
	}
}

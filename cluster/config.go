// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"

	"github.com/quorate/quorate/cluster/telemetry"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/ddata/services/registry"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gateway"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/reminder"
	"github.com/quorate/quorate/transport"

	"github.com/quorate/quorate/config/field"
)

// The sections of a node are the fields of [Config]. The files are read into the sections
// of the node and of the program, and all of them are checked together ([load],
// [configuration.fill]).

// Config is a whole configuration file, with a field for each section.
type Config struct {
	// Cluster names the cluster; it is the same on all nodes.
	Cluster membership.ClusterConfig `koanf:"cluster"`

	// Node describes this node: its address, and labels that others see.
	Node membership.NodeConfig `koanf:"node"`

	// Membership says how nodes join, gossip, find failures and leave.
	Membership membership.ProtocolConfig `koanf:"membership"`

	// Transport says how nodes connect to one another.
	Transport transport.Config `koanf:"transport"`

	// Downing says which nodes must go after a partition, and when that is decided.
	Downing downing.Config `koanf:"downing"`

	// Sharding says how entities are spread over the nodes, and bounds what waits for
	// them.
	Sharding sharding.Config `koanf:"sharding"`

	// States says where entities keep what must survive, see [Node.States]. A change needs a restart.
	States StatesConfig `koanf:"states"`

	// Reminders says how reminders are kept and delivered, see [Node.Reminders]. A change needs a
	// restart.
	Reminders reminder.Config `koanf:"reminders"`

	// Data says which replicated keys are durable, expire or have copies on some nodes only,
	// and bounds what they take. A change needs a restart.
	Data ddata.Config `koanf:"ddata"`

	// Registry says how services are registered, see [Node.Registry]. A change needs a
	// restart.
	Registry registry.Config `koanf:"registry"`

	// PubSub bounds the messages of topics, see [Node.Topics]. A change needs a restart.
	PubSub pubsub.Config `koanf:"pubsub"`

	// Gateway lets clients that are no members ask and tell entities. A change needs a restart.
	Gateway gateway.Config `koanf:"gateway"`

	// Management is the HTTP interface of the node.
	Management management.Config `koanf:"management"`

	// Shutdown says how the node ends. A change needs a restart.
	Shutdown ShutdownConfig `koanf:"shutdown"`

	// Log says what the node logs, and in which form.
	Log LogConfig `koanf:"log"`

	// Telemetry says where the metrics of the node go.
	Telemetry telemetry.Config `koanf:"telemetry"`

	// Plugins are strategies in other processes, each under the name by which
	// downing.strategy, sharding.allocation.strategy, membership.discovery.join-decider or
	// membership.discovery.methods chooses it. A plugin that is not chosen is not started. Of
	// a chosen one everything may change while the node runs. The program has the package
	// plugins/host for them, and starts the node with the option
	// cluster.WithPlugins(host.New()).
	Plugins map[string]plugins.Config `koanf:"plugins" reload:"yes"`

	// Reload says how the node takes over changes of its files.
	Reload ReloadConfig `koanf:"reload"`
}

// Default returns the configuration with the default of every setting. The name of the
// cluster and the address of the node have no default.
func Default() Config {
	var c Config
	for _, p := range parts() {
		if p.defaults != nil {
			p.defaults(&c)
		}
	}
	return c
}

// membership returns the sections that make a node a member.
func (c Config) membership() membership.Config {
	return membership.Config{Cluster: c.Cluster, Node: c.Node, Membership: c.Membership, Transport: c.Transport, Downing: c.Downing}
}

// Validate reports what does not fit together across the sections. Package config, which
// calls it, validates each section separately.
func (c Config) Validate() error {
	var faults []error
	for _, p := range parts() {
		if p.check != nil {
			faults = append(faults, p.check(c))
		}
	}
	return errors.Join(append(faults, unreplaced(c))...)
}

// validateTelemetry refuses metrics that could never be fetched.
func (c Config) validateTelemetry() error {
	if c.Telemetry.Metrics == telemetry.Prometheus && c.Management.Address == "" && !c.Management.Health.Metrics {
		fault := field.Errorf("telemetry.metrics", "prometheus fetches from the HTTP interface of the node: set management.address, or management.health.address with management.health.metrics: true")
		return field.Relate(fault, "management.address", "management.health.address", "management.health.metrics")
	}
	if c.Telemetry.Metrics == telemetry.None && c.Management.Health.Metrics {
		return field.Relate(field.Errorf("management.health.metrics", "is true, and there are no metrics: set telemetry.metrics"), "telemetry.metrics")
	}
	return nil
}

// Load returns the configuration that [Start] uses with the same options, and fills the
// sections of the program. It starts nothing. The error is a list with every fault, each
// with file, line, key and cure. Paths of files in the result are absolute.
func Load(opts ...Option) (Config, error) {
	o := optionsOf(opts)
	cfg, _, err := o.load()
	if err != nil {
		return Config{}, err
	}
	for i, section := range o.sections {
		section.fill(cfg.own[i])
	}
	return cfg.Config, nil
}

// configuration is everything that a node is configured with: its own sections, and those
// of the program.
type configuration struct {
	Config

	own []any // A pointer to the struct of each section of the program, in the order of the options.
}

// load returns the configuration that the options describe, checked, and the files that
// were read for it, nil if none were.
func (o *options) load() (configuration, *config.File, error) {
	if o.config == nil {
		file, err := o.loader().Load(o.files...)
		if err != nil {
			return configuration{}, nil, err
		}
		cfg, err := o.finish(file)
		return cfg, file, err
	}
	switch {
	case len(o.files) > 0:
		return configuration{}, nil, fmt.Errorf("cluster: both WithConfig and WithFile(%q) were given: use WithChange to change what a file says", o.files[0])
	case len(o.providers) > 0:
		return configuration{}, nil, fmt.Errorf("cluster: both WithConfig and the provider %q were given: use WithChange to change what a provider says", o.providers[0].Name)
	}
	cfg := configuration{Config: *o.config}
	o.change(&cfg)
	err := o.fill(new(config.File), &cfg)
	return cfg, nil, err
}

// loader reads files and providers with the environment of the process.
func (o *options) loader() config.Loader {
	return config.Loader{Environ: os.Environ(), Formats: o.formats, Providers: o.providers}
}

// finish makes a configuration of the files, with the changes of the program, which are
// checked like the files.
func (o *options) finish(file *config.File) (configuration, error) {
	if len(o.changes) == 0 {
		return o.decode(file)
	}
	first := *o
	first.starts = false // What the program changes may be what a start would find.
	cfg, err := first.decode(file)
	if err != nil {
		return cfg, err
	}
	o.change(&cfg)
	none := new(config.File)
	whole, _ := o.whole(cfg.Config, none.Resolve)
	return cfg, none.Decode("", whole)
}

// whole returns what a configuration is decoded into, which checks it, and a pointer to the configuration in that.
func (o *options) whole(c Config, resolve func(string) string) (any, *Config) {
	linked := linkCheck{Config: c, options: o}
	if !o.starts {
		return &linked, &linked.Config
	}
	s := &startCheck{linkCheck: linked, resolve: resolve}
	return s, &s.Config
}

// change lets the program change the configuration.
func (o *options) change(cfg *configuration) {
	for _, change := range o.changes {
		change(&cfg.Config)
	}
}

// decode makes a configuration of the files.
func (o *options) decode(file *config.File) (configuration, error) {
	cfg := configuration{Config: Default()}
	if err := o.fill(file, &cfg); err != nil {
		return configuration{}, err
	}
	for _, p := range parts() {
		if p.resolve != nil {
			p.resolve(&cfg.Config, file.Resolve)
		}
	}
	return cfg, nil
}

// fill lays the files over a configuration, and over the defaults of the sections of the
// program, and checks everything.
func (o *options) fill(file *config.File, cfg *configuration) error {
	o.chooseMethods(file, cfg.Config)
	o.chooseStores(file, cfg.Config)
	o.chooseStates(file, cfg.Config)
	beside := make([]config.Section, len(o.sections))
	cfg.own = make([]any, len(o.sections))
	for i, s := range o.sections {
		var err error
		if beside[i], err = s.target(); err != nil {
			return err
		}
		cfg.own[i] = beside[i].Into
	}
	whole, into := o.whole(cfg.Config, file.Resolve)
	err := file.DecodeAll(whole, beside...)
	cfg.Config = *into
	return err
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/membership"
)

// A program links the methods that its files may name ([WithDiscovery]). Those that
// membership.discovery.methods names are opened ([openDiscovery]) when their sections have
// been read, given to the membership, and closed after it. A method may be a plugin too, which
// is opened and closed with the other plugins.

// WithDiscovery adds a method by which nodes look contact points up, such as one of the modules
// below discovery. Membership.discovery.methods selects the method by its name. The settings of
// the method are the section "discovery-NAME" of the files, with these defaults; the section is
// checked when the method is selected. If a pointer to the settings has a method Paths, which
// returns pointers to names of files, these are made relative to the file of the configuration.
// [Start] calls open for a selected method. A method that is an [io.Closer] is closed when the
// membership has ended.
//
//	cluster.WithDiscovery("dns", dns.Default(), func(c dns.Config) (discovery.Discovery, error) { return dns.New(c) })
func WithDiscovery[T any](name string, defaults T, open func(T) (discovery.Discovery, error)) Option {
	return func(o *options) {
		o.methods = append(o.methods, newChoice(o, discoverySection, name, defaults, open, keyMethods))
	}
}

const (
	// discoverySection begins the name of the section of a method.
	discoverySection = "discovery-"
	// keyMethods is the setting that selects methods.
	keyMethods = "membership.discovery.methods"
)

// chooseMethods tells each method whether a configuration selects it, or the file that will be
// laid over that configuration.
func (o *options) chooseMethods(file *config.File, c Config) {
	chosen := slices.Clone(c.Membership.Discovery.Methods)
	read := map[string]any{}
	if err := file.Decode("membership", &read); err == nil { // What is wrong is reported when all is read.
		section, _ := read["discovery"].(map[string]any)
		switch methods := section["methods"].(type) {
		case []any:
			for _, name := range methods {
				chosen = append(chosen, fmt.Sprint(name))
			}
		case string: // From a variable of the environment.
			for name := range strings.SplitSeq(methods, ",") {
				chosen = append(chosen, strings.TrimSpace(name))
			}
		}
	}
	for _, m := range o.methods {
		m.choose(chosen)
	}
}

// choiceSections are the sections of the methods and of the stores of leases and states, for a check without
// a start.
func (o *options) choiceSections(file *config.File) ([]config.Section, error) {
	o.chooseMethods(file, Default())
	o.chooseStores(file, Default())
	o.chooseStates(file, Default())
	var choices []ownSection
	for _, m := range o.methods {
		choices = append(choices, m)
	}
	for _, s := range o.stores {
		choices = append(choices, s)
	}
	for _, s := range o.states {
		choices = append(choices, s)
	}
	var all []config.Section
	for _, c := range choices {
		s, err := c.target()
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// openDiscovery opens the methods that the configuration names, and takes those that are
// plugins, which are open already.
func openDiscovery(_ context.Context, b *builder) error {
	for _, name := range b.cfg.Membership.Discovery.Methods {
		plugin := b.plugins.plugin(name)
		if plugin == nil {
			continue
		}
		found, err := plugin.Discovery()
		if err != nil {
			return err
		}
		b.ask(name, found)
	}
	for _, m := range b.options.methods {
		if !slices.Contains(b.cfg.Membership.Discovery.Methods, m.called()) {
			continue
		}
		found, err := m.make(b.cfg, b.resolve())
		if err != nil {
			for _, g := range b.asked {
				err = errors.Join(err, g.drop())
			}
			return fmt.Errorf("cluster: discovery: %s: %w", m.called(), err)
		}
		b.ask(m.called(), found)
	}
	return nil
}

// ask has the node ask a method.
func (b *builder) ask(name string, found discovery.Discovery) {
	b.discovery = append(b.discovery, discovery.Method{Name: name, Discovery: found})
	b.asked = append(b.asked, newGiven("the discovery method "+name, found))
}

// stopDiscovery closes the methods.
func stopDiscovery(ctx context.Context, n *Node) error {
	var faults []error
	for _, g := range n.asked {
		faults = append(faults, g.close(ctx))
	}
	return errors.Join(faults...)
}

// looksUp are the options with which the membership looks contact points up.
func (n *Node) looksUp() []membership.Option {
	return []membership.Option{membership.WithDiscovery(n.discovery...)}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"log/slog"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/plugins"
)

// PluginHost runs plugins as processes; [WithPlugins] gives it to a node. It is an interface,
// so that only a program that wants plugins links what runs them.
type PluginHost[P Plugin] interface {
	// Open starts the plugin with that name in the file, and returns when the plugin is
	// ready for calls. The node's start and its reloads call Open, and the context is for
	// Open alone. Observe is called with everything that happens to the plugin, from
	// several goroutines, and does not block.
	Open(ctx context.Context, name string, section plugins.Config, log *slog.Logger, observe func(plugins.Event)) (P, error)
}

// Plugin is a plugin that a [PluginHost] runs. All methods are safe for concurrent use.
type Plugin interface {
	// Status returns the condition of the plugin.
	Status() plugins.Status

	// Downing returns the plugin as a downing provider, or an error if it decides
	// something else.
	Downing() (downing.Provider, error)

	// Allocation returns the plugin as an allocation strategy, or an error if it decides
	// something else.
	Allocation() (allocation.Strategy, error)

	// FailureDetector returns the plugin as a judge of heartbeats, or an error if it decides
	// something else.
	FailureDetector() (fd.Judge, error)

	// JoinDecider returns the plugin as what decides for a node without a cluster, or an
	// error if it decides something else.
	JoinDecider() (bootstrap.JoinDecider, error)

	// Discovery returns the plugin as a method of discovery, or an error if it decides
	// something else.
	Discovery() (discovery.Discovery, error)

	// Swap changes to another configuration: the old process decides until the new one is
	// ready. After an error the old one goes on.
	Swap(ctx context.Context, section plugins.Config) error

	// Close ends the process, within the context.
	Close(ctx context.Context) error
}

// openPlugin is the method Open of a [PluginHost].
type openPlugin func(ctx context.Context, name string, section plugins.Config, log *slog.Logger, observe func(plugins.Event)) (Plugin, error)

// askable is what a [PluginHost] may say of a plugin before it is started: see [WithPlugins].
type askable func(section plugins.Config) error

// WithPlugins sets what runs the plugins of the section plugins: host.New() of the package plugins/host. Without it a
// configuration with plugins is refused. A host that has the method Unenforced(plugins.Config) error is asked by
// [Check] what this system does not keep of a plugin's settings; one that has Startable(plugins.Config) error is asked
// by Check and [Start] why the executable cannot be started.
func WithPlugins[P Plugin](h PluginHost[P]) Option {
	return func(o *options) {
		if u, ok := any(h).(interface {
			Unenforced(section plugins.Config) error
		}); ok {
			o.unenforced = u.Unenforced
		}
		if u, ok := any(h).(interface {
			Startable(section plugins.Config) error
		}); ok {
			o.startable = u.Startable
		}
		o.plugins = func(ctx context.Context, name string, section plugins.Config, log *slog.Logger, observe func(plugins.Event)) (Plugin, error) {
			p, err := h.Open(ctx, name, section, log, observe)
			if err != nil {
				return nil, err // Not a nil pointer in an interface.
			}
			return p, nil
		}
	}
}

// linkedStrategies reports plugins that nothing in the program can run, and a store of leases
// that it did not link.
func (o *options) linkedStrategies(c Config) error {
	return errors.Join(o.linkedPlugins(c), o.linkedLeases(c))
}

// linkedPlugins reports plugins that nothing in the program can run.
func (o *options) linkedPlugins(c Config) error {
	if len(c.Plugins) == 0 || o.plugins != nil {
		return nil
	}
	return notLinked("plugins", "what runs plugins", "plugins/host", "cluster.WithPlugins(host.New())")
}

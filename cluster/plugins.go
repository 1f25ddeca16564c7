// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/sharding"

	"github.com/quorate/quorate/config/field"
)

// Plugins are opened when they are named as a strategy ([openStrategies]), handed to
// membership and sharding as options, and replaced by a reload: the plugin for downing when
// all members have it, each other plugin in one swap.

// builtIn are the strategies that need no plugin. Plugins may not have their names.
func builtIn() []string {
	return slices.Concat(downingNames(), fd.BuiltIns(), allocationNames(), []string{discovery.MethodStatic})
}

// downingNames are the names of the downing strategies that need no plugin.
func downingNames() []string { return append(downing.BuiltIns().Names(), downing.LeaseMajorityName) }

// strategySetting is a setting that names the strategy for a policy, built in or a plugin.
type strategySetting struct {
	key, name string
	policy    plugins.Policy
}

// uses are the settings by which a plugin is chosen.
func (c Config) uses() []strategySetting {
	all := []strategySetting{
		{"downing.strategy", c.Downing.Strategy, plugins.Downing},
		{"membership.failure-detector.strategy", c.Membership.FailureDetector.Strategy, plugins.FailureDetector},
		{"sharding.allocation.strategy", c.Sharding.Allocation.Strategy, plugins.Allocation},
		{"membership.discovery.join-decider", c.Membership.Discovery.JoinDecider, plugins.JoinDecider},
	}
	for _, method := range c.Membership.Discovery.Methods {
		all = append(all, strategySetting{keyMethods, method, plugins.Discovery})
	}
	return all
}

// validatePlugins reports names that clash, and strategies that name a plugin for another
// policy.
func (c Config) validatePlugins() error {
	var faults field.Faults
	for _, u := range c.uses() {
		if p, ok := c.Plugins[u.name]; ok && p.Policy != u.policy {
			faults.Add(field.Errorf(u.key, "%s is a plugin for %s, one for %s is needed", u.name, p.Policy, u.policy))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Plugins)) {
		faults.Refuse(slices.Contains(builtIn(), name), "plugins."+name, "is the name of a built-in strategy; give the plugin another one")
	}
	return faults.Err()
}

// resolvePlugins makes the paths of plugins relative to the file.
func resolvePlugins(c *Config, path func(string) string) {
	for name, p := range c.Plugins {
		p.Path = path(p.Path)
		c.Plugins[name] = p
	}
}

// strategies are the plugins that decide for a node: those that the configuration names
// as its strategies. Other plugins in the list are not started.
//
//	file ──> open ──> membership, sharding
//	  │ changed
//	  ├─ downing ──> open ──> SetDowning ──> every member has it ──> the old one is closed
//	  └─ others ───> Swap: start, check, switch, drain, stop
type strategies struct {
	log     *slog.Logger
	open    openPlugin // Nil when no plugin is configured.
	metrics *pluginMetrics
	workers sync.WaitGroup // Goroutines that close plugins and hand strategies over.

	stores  []linkedChoice[lease.Store] // The stores of leases that the program has linked.
	resolve func(string) string         // Makes paths absolute; nil if there is no file.
	leases  *leaseMetrics

	ending chan struct{} // Closed when the node ends: nothing waits for questions any more.
	ended  sync.Once

	mu      sync.Mutex          // Guards what follows.
	downing map[Plugin]struct{} // Plugins for downing that the node may still ask.

	// swapped are the plugins that a swap replaces, which are all but those for downing, by
	// their names. Another allocation strategy changes the map.
	swapped map[string]Plugin
}

// plugin returns the plugin of a name that a swap replaces, nil if there is none.
func (s *strategies) plugin(name string) Plugin {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.swapped[name]
}

// openStrategies starts the plugins that a configuration uses.
func openStrategies(ctx context.Context, cfg Config, o *options, meters metric.MeterProvider, resolve func(string) string) (*strategies, error) {
	open, log := o.plugins, o.log
	s := &strategies{
		log: log, open: open, metrics: measurePlugins(meters, cfg.Node.Address, log),
		ending: make(chan struct{}), swapped: map[string]Plugin{}, downing: map[Plugin]struct{}{},
		stores: o.stores, resolve: resolve, leases: measureLeases(meters, cfg.Node.Address, log),
	}
	for _, u := range cfg.uses() {
		p, ok := cfg.Plugins[u.name]
		if !ok || u.policy == plugins.Downing {
			continue
		}
		plugin, err := open(ctx, u.name, p, log, s.metrics.observe)
		if err != nil {
			s.end()
			s.metrics.stop()
			s.leases.stop()
			return nil, fmt.Errorf("cluster: %w", err)
		}
		s.swapped[u.name] = plugin
	}
	return s, nil
}

// startPlugins starts the plugins that the configuration uses.
func startPlugins(ctx context.Context, b *builder) (err error) {
	b.plugins, err = openStrategies(ctx, b.cfg.Config, &b.options, b.meters, b.resolve())
	return err
}

func stopPlugins(_ context.Context, n *Node) error {
	n.plugins.end()
	return nil
}

// forMembership returns the options by which the membership uses a plugin.
func (s *strategies) forMembership(ctx context.Context, cfg configuration) ([]membership.Option, error) {
	var opts []membership.Option
	if plugin := s.plugin(cfg.Membership.Discovery.JoinDecider); plugin != nil {
		decider, err := plugin.JoinDecider()
		if err != nil {
			return nil, err
		}
		opts = append(opts, membership.WithJoinDecider(decider))
	}
	if name := cfg.Membership.FailureDetector.Strategy; s.plugin(name) != nil {
		judge, err := s.plugin(name).FailureDetector()
		if err != nil {
			return nil, err
		}
		opts = append(opts, membership.WithJudge(name, judge))
	}
	d, err := s.openDowning(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if d.Provider != nil {
		opts = append(opts, membership.WithDowning(d))
	}
	return opts, nil
}

// forSharding returns the options by which sharding uses a plugin, or the map of locations.
func (s *strategies) forSharding(n *Node, cfg Config) ([]sharding.Option, error) {
	if cfg.Sharding.Allocation.Strategy == allocation.ExternalName {
		warnOfLocations(s.log, cfg)
		n.follows.Store(true)
		strategy, err := follow(n, cfg.Sharding.Allocation.External)
		return []sharding.Option{sharding.WithAllocation(strategy)}, err
	}
	plugin := s.plugin(cfg.Sharding.Allocation.Strategy)
	if plugin == nil {
		return nil, nil
	}
	strategy, err := plugin.Allocation()
	if err != nil {
		return nil, err
	}
	return []sharding.Option{sharding.WithAllocation(strategy)}, nil
}

// openDowning starts the plugin of the downing strategy, or opens the store of its leases; the
// provider is nil if the strategy is built in and decides by the view alone.
func (s *strategies) openDowning(ctx context.Context, cfg configuration) (membership.Downing, error) {
	if cfg.Downing.Strategy == downing.LeaseMajorityName {
		return s.openLease(cfg)
	}
	name := cfg.Downing.Strategy
	d := membership.Downing{Name: name, Config: cfg.Downing}
	c, ok := cfg.Plugins[name]
	if !ok {
		return d, nil
	}
	plugin, err := s.open(ctx, name, c, s.log, s.metrics.observe)
	if err != nil {
		return d, fmt.Errorf("cluster: %w", err)
	}
	if d.Provider, err = plugin.Downing(); err != nil {
		s.discard(plugin)
		return d, err
	}
	d.Version, d.Parameters = plugin.Status().Manifest.Version, digest(c.Settings)
	d.Release = func() { s.close(plugin) }
	s.mu.Lock()
	defer s.mu.Unlock()
	s.downing[plugin] = struct{}{}
	return d, nil
}

// digest distinguishes settings. Other nodes see it, so it does not reveal the settings:
// they may be secret.
func digest(settings map[string]any) string {
	if len(settings) == 0 {
		return ""
	}
	text, err := json.Marshal(settings) // Keys are sorted.
	if err != nil {
		return "unknown" // The settings were checked to have a form in JSON.
	}
	sum := sha256.Sum256(text)
	return "settings sha256 " + hex.EncodeToString(sum[:8])
}

// closeTimeout bounds the end of a plugin: its calls, and then its process.
const closeTimeout = 15 * time.Second

// close ends a plugin for downing that the node does not ask any more.
func (s *strategies) close(p Plugin) {
	s.mu.Lock()
	delete(s.downing, p)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		s.log.Error("plugin is left", "plugin", p.Status().Name, "error", err)
	}
}

// discard ends a plugin without waiting for it.
func (s *strategies) discard(p Plugin) {
	s.workers.Go(func() { s.close(p) }) // Ends within closeTimeout; end waits for it.
}

// all returns the plugins that are open, sorted by name.
func (s *strategies) all() []Plugin {
	s.mu.Lock()
	all := slices.AppendSeq(slices.Collect(maps.Keys(s.downing)), maps.Values(s.swapped))
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b Plugin) int { return cmp.Compare(a.Status().Name, b.Status().Name) })
	return all
}

// end ends all plugins.
func (s *strategies) end() {
	s.ended.Do(func() { close(s.ending) })
	for _, p := range s.all() {
		s.discard(p)
	}
	s.workers.Wait()
	s.leases.stop()
}

// prepareDowning gives the node another downing strategy: its plugin is started and
// checked first. The cluster changes to the strategy when all members have it.
func prepareDowning(ctx context.Context, n *Node, from, to configuration) (Prepared, error) {
	name := to.Downing.Strategy
	if reflect.DeepEqual(from.Downing, to.Downing) && reflect.DeepEqual(from.Plugins[name], to.Plugins[name]) {
		return Prepared{}, nil
	}
	return offerDowning(ctx, n, to)
}

// offerDowning starts and checks the downing strategy, and offers it to the cluster.
func offerDowning(ctx context.Context, n *Node, to configuration) (Prepared, error) {
	s := n.plugins
	d, err := s.openDowning(ctx, to)
	if err != nil {
		return Prepared{}, err
	}
	discard := func() {
		if d.Release != nil {
			s.workers.Go(d.Release) // Ends within closeTimeout; end waits for it.
		}
	}
	return Prepared{Discard: discard, Commit: func() {
		s.workers.Go(func() { // Ends within handOver; end waits for it.
			ctx, cancel := context.WithTimeout(context.Background(), handOver)
			defer cancel()
			if err := n.member.SetDowning(ctx, d); err != nil {
				s.log.ErrorContext(ctx, "the downing strategy is not taken over", "strategy", d.Name, "error", err)
				discard()
			}
		})
	}}, nil
}

// handOver bounds the time in which the membership takes a strategy.
const handOver = 10 * time.Second

// prepareSwaps swaps the plugins whose configuration has changed, but for those for downing. A
// swap can fail, so swaps come when all other parts are prepared; after one that fails, those
// before it are swapped back.
func prepareSwaps(ctx context.Context, n *Node, from, to configuration) (Prepared, error) {
	var back []func() error
	for _, name := range slices.Sorted(maps.Keys(to.Plugins)) {
		c, plugin := to.Plugins[name], n.plugins.plugin(name)
		if plugin == nil || !to.chooses(name) || reflect.DeepEqual(from.Plugins[name], c) {
			continue
		}
		if err := plugin.Swap(ctx, c); err != nil {
			faults := []error{err}
			for _, undo := range back {
				faults = append(faults, undo())
			}
			return Prepared{}, errors.Join(faults...)
		}
		back = append(back, func() error { return plugin.Swap(ctx, from.Plugins[name]) })
	}
	return Prepared{}, nil
}

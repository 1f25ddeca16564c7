// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/config/field"
)

// The settings of one plugin come first, then their defaults, then their validation.

// Config configures one plugin. In the file of a cluster it stands under plugins.<name>.
// A duration or a limit of zero means the default.
type Config struct {
	// Policy is what the plugin decides. A plugin that declares another policy is
	// refused.
	Policy Policy `koanf:"policy" oneof:"downing|allocation|failure-detector|join-decider|discovery" required:"yes"`
	// Path is the executable. In a file it is relative to that file; the reader of the
	// file makes it absolute.
	Path string `koanf:"path" required:"yes"`
	// SHA256 is the checksum of the executable, 64 hexadecimal digits, or a list of up to 64 of
	// them, one for each platform. The executable must have one of them. That is checked at each
	// start, so that a changed file cannot change how the cluster decides.
	SHA256 Checksums `koanf:"sha256"`
	// Unpinned permits that SHA256 is absent: for development. Each start warns.
	Unpinned bool `koanf:"unpinned"`
	// Settings are handed to the plugin as JSON; the plugin checks them. At most
	// [MaxSettingsBytes].
	Settings map[string]any `koanf:"settings" hidden:"yes"`
	// Debug lets a debugger hold the process, for as long as it wants: StartTimeout does not apply, and a process that
	// answers no health checks and no calls is not killed. A call still ends after CallTimeout, and the rule of the policy
	// for missing answers applies. For development: a plugin that hangs is not replaced. Each start warns.
	Debug bool `koanf:"debug"`
	// Args are the arguments of the process; up to 64.
	Args []string `koanf:"args"`
	// Environment is the environment of the process: only the variables named here, with
	// their values; nothing of the host's is passed on.
	Environment map[string]string `koanf:"environment" hidden:"yes"`
	// Limits bound the memory and the number of the plugin's processes.
	Limits Limits `koanf:"limits"`
	// User is the user as whom the process runs, by name or number: by default that of
	// the node. Another one takes a node with the rights of root, on systems that have
	// them. The process then belongs to no group but that of Group, which must be set for
	// a number without a name in the system.
	User string `koanf:"user"`
	// Group is the group of the process, by name or number: by default that of User if
	// it is set, and otherwise that of the node.
	Group string `koanf:"group"`
	// NewPrivileges permits the process to gain rights by running a program, such as sudo,
	// that has more than its user (setuid, file capabilities). By default Linux refuses that.
	NewPrivileges bool `koanf:"new-privileges"`
	// StartTimeout is how long a start may take, until the plugin is configured
	// and healthy: 100 ms to 1 min, by default 5 s.
	StartTimeout time.Duration `koanf:"start-timeout" range:"100ms..1m"`
	// CallTimeout is how long a call may take: 1 ms to 5 s, the limit that the callers
	// keep themselves, which is the default too. After that the rule of the policy for
	// missing answers applies.
	CallTimeout time.Duration `koanf:"call-timeout" range:"1ms..5s"`
	// HealthInterval is the time between health checks: 10 ms to 1 min, by default 1 s. A
	// plugin that hangs is noticed after about HealthInterval and HealthTimeout together.
	HealthInterval time.Duration `koanf:"health-interval" range:"10ms..1m"`
	// HealthTimeout is how long a health check may take: 10 ms to 1 min, by
	// default 1 s.
	HealthTimeout time.Duration `koanf:"health-timeout" range:"10ms..1m"`
	// RestartBackoffMin is the pause before the first restart, which doubles with each
	// restart that fails: 1 ms up to RestartBackoffMax, by default 100 ms.
	RestartBackoffMin time.Duration `koanf:"restart-backoff-min" range:"1ms..1h"`
	// RestartBackoffMax is the longest pause: up to 1 h, by default 30 s.
	RestartBackoffMax time.Duration `koanf:"restart-backoff-max" range:"1ms..1h"`
}

// Bounds of the configuration.
const (
	maxCallTimeout = 5 * time.Second
	maxArgs        = 64
)

// Default returns a configuration with the default of every duration and limit. Policy,
// path and checksum have no default.
func Default() Config {
	return Config{
		Limits:            DefaultLimits(),
		StartTimeout:      5 * time.Second,
		CallTimeout:       maxCallTimeout,
		HealthInterval:    time.Second,
		HealthTimeout:     time.Second,
		RestartBackoffMin: 100 * time.Millisecond,
		RestartBackoffMax: 30 * time.Second,
	}
}

// SetDefaults makes c the default configuration: package config calls it for each entry
// of the section before it decodes the entry.
func (c *Config) SetDefaults() { *c = Default() }

// WithDefaults returns c with the default in place of every duration and limit that is zero.
func (c Config) WithDefaults() Config {
	d := Default()
	c.Limits = c.Limits.WithDefaults()
	c.StartTimeout = cmp.Or(c.StartTimeout, d.StartTimeout)
	c.CallTimeout = cmp.Or(c.CallTimeout, d.CallTimeout)
	c.HealthInterval = cmp.Or(c.HealthInterval, d.HealthInterval)
	c.HealthTimeout = cmp.Or(c.HealthTimeout, d.HealthTimeout)
	c.RestartBackoffMin = cmp.Or(c.RestartBackoffMin, d.RestartBackoffMin)
	c.RestartBackoffMax = cmp.Or(c.RestartBackoffMax, d.RestartBackoffMax)
	return c
}

// Validate returns all faults of the configuration, joined, each with its key. It
// does not look at the file.
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(!slices.Contains(Policies(), c.Policy), "policy", "%q is none of %v", c.Policy, Policies())
	faults.Refuse(c.Path == "" || strings.ContainsRune(c.Path, 0), "path", "%q names no file", c.Path)
	faults.Add(c.validatePin(), c.validateProcess(), c.Limits.validate(), c.validateUser())
	text, err := json.Marshal(c.Settings)
	faults.Refuse(err != nil, "settings", "have no form in JSON: %w", err)
	faults.Refuse(len(text) > MaxSettingsBytes, "settings", "have %d bytes as JSON, the limit is %d", len(text), MaxSettingsBytes)
	d := c.WithDefaults()
	faults.Add(field.Ranges(d))
	faults.Relate(d.RestartBackoffMin > d.RestartBackoffMax, "restart-backoff-min", "restart-backoff-max",
		"%v is above restart-backoff-max, which is %v", d.RestartBackoffMin, d.RestartBackoffMax)
	return faults.Err()
}

func (c Config) validatePin() error {
	switch {
	case c.SHA256 == nil && !c.Unpinned:
		return field.Relate(field.Errorf("sha256", "is missing: without it, whoever can write the file decides for the cluster; "+
			"give the checksum of the file, or unpinned: true while developing"), "unpinned")
	case c.SHA256 != nil && c.Unpinned:
		return field.Relate(field.Errorf("unpinned", "contradicts sha256; leave one of them out"), "sha256")
	}
	return c.SHA256.validate()
}

func (c Config) validateProcess() error {
	var faults field.Faults
	faults.Refuse(len(c.Args) > maxArgs, "args", "are %d, the limit is %d", len(c.Args), maxArgs)
	for i, arg := range c.Args {
		faults.Refuse(strings.ContainsRune(arg, 0), "args", "number %d has a zero byte", i+1)
	}
	names := make([]string, 0, len(c.Environment))
	for name := range c.Environment {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(c.Environment[name], 0):
			faults.Add(field.Errorf("environment", "%q is no variable that a process can have", name))
		case strings.HasPrefix(name, "PLUGIN_") || strings.HasPrefix(name, CookieKey):
			faults.Add(field.Errorf("environment", "%s belongs to the handshake between host and plugin", name))
		}
	}
	return faults.Err()
}

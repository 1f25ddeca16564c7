// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/toml"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// What the commands that try a plugin out have in common: the arguments and flags that say which plugin, and how its
// process is started ([PluginFlags]), the configuration that follows from them ([PluginFlags.config]), and the same
// arguments again, for another process ([PluginFlags.arguments]).

// PluginFlags says which plugin is tried out, and how its process is started.
type PluginFlags struct {
	File string `arg:"" type:"path" help:"Executable of the plugin, or a configuration file that has it."`
	Name string `arg:"" optional:"" help:"Name of the plugin in the configuration file."`

	Settings     string            `type:"path" placeholder:"FILE" help:"File with the plugin's settings, YAML or JSON."`
	Arg          []string          `sep:"none" placeholder:"ARG" help:"An argument of the process; may be repeated."`
	Env          map[string]string `mapsep:"none" placeholder:"NAME=VALUE" help:"A variable of the process, which has no others; may be repeated."`
	StartTimeout time.Duration     `placeholder:"TIME" help:"How long each start may take, 100ms to 1m; 5s."`
	CallTimeout  time.Duration     `placeholder:"TIME" help:"How long each call may take, 1ms to 5s; 5s."`
	MemoryBytes  int64             `placeholder:"BYTES" help:"Data memory of each process, -1 for no limit; 2 GiB."`
	Tasks        int               `placeholder:"N" help:"Processes and threads, -1 for no limit; 512."`
}

// pluginFlagsHelp is the part of the help of these commands about a configuration file.
const pluginFlagsHelp = `With a configuration file and the name of a plugin in it, all that the file says
of the plugin holds: settings, arguments, environment, limits, times, checksum
(quorate plugin pin writes it, and unpinned: true does without it).
A flag takes the place of what the file says; --env adds a variable. A program that
begins with a hyphen is given its arguments as --arg=-x.`

// config returns the configuration of the plugin. Without a policy in a file, it has none.
func (t *PluginFlags) config() (plugins.Config, error) {
	cfg, err := t.section()
	if err != nil {
		return cfg, RejectedError{Text: err.Error()}
	}
	if t.Settings != "" {
		if cfg.Settings, err = readSettings(t.Settings); err != nil {
			return cfg, RejectedError{Text: err.Error()}
		}
	}
	if len(t.Arg) > 0 {
		cfg.Args = t.Arg
	}
	cfg.Environment = maps.Clone(cfg.Environment)
	if len(t.Env) > 0 && cfg.Environment == nil {
		cfg.Environment = map[string]string{}
	}
	maps.Copy(cfg.Environment, t.Env)
	if t.StartTimeout != 0 {
		cfg.StartTimeout = t.StartTimeout
	}
	if t.CallTimeout != 0 {
		cfg.CallTimeout = t.CallTimeout
	}
	if t.MemoryBytes != 0 {
		cfg.Limits.MemoryBytes = t.MemoryBytes
	}
	if t.Tasks != 0 {
		cfg.Limits.Tasks = t.Tasks
	}
	return cfg, nil
}

// section returns the configuration that the file has, or the default one of an executable.
func (t *PluginFlags) section() (plugins.Config, error) {
	if t.Name == "" && !slices.Contains([]string{".yaml", ".yml", ".json", ".toml"}, filepath.Ext(t.File)) {
		cfg := plugins.Default()
		cfg.Path = t.File
		return cfg, nil
	}
	_, all, err := pluginsOf(t.File)
	if err != nil {
		return plugins.Config{}, err
	}
	return pluginOf(all, t.File, t.Name)
}

// pluginsOf returns the plugins of files, with absolute paths.
func pluginsOf(files ...string) (*config.File, map[string]plugins.Config, error) {
	f, err := config.Loader{Environ: os.Environ(), Formats: []config.Format{toml.Format()}}.Load(files...)
	if err != nil {
		return nil, nil, err
	}
	all := map[string]plugins.Config{}
	if err := f.Decode("plugins", &all); err != nil {
		return nil, nil, err
	}
	for name, cfg := range all {
		cfg.Path = f.Resolve(cfg.Path)
		all[name] = cfg
	}
	return f, all, nil
}

// pluginOf returns the plugin of a name.
func pluginOf(all map[string]plugins.Config, file, name string) (plugins.Config, error) {
	names := slices.Sorted(maps.Keys(all))
	cfg, ok := all[name]
	switch {
	case ok:
		return cfg, nil
	case len(names) == 0:
		return cfg, fmt.Errorf("%s has no plugins", file)
	case name == "":
		return cfg, fmt.Errorf("%s: say which plugin: %s", file, strings.Join(names, ", "))
	}
	return cfg, fmt.Errorf("%s has no plugin %q but %s", file, name, strings.Join(names, ", "))
}

// arguments returns the arguments and flags in the form of a command line.
func (t *PluginFlags) arguments() []string {
	words := []string{t.File}
	if t.Name != "" {
		words = append(words, t.Name)
	}
	flag := func(given bool, name, value string) {
		if given {
			words = append(words, "--"+name+"="+value)
		}
	}
	flag(t.Settings != "", "settings", t.Settings)
	for _, arg := range t.Arg {
		flag(true, "arg", arg)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		flag(true, "env", name+"="+t.Env[name])
	}
	flag(t.StartTimeout != 0, "start-timeout", t.StartTimeout.String())
	flag(t.CallTimeout != 0, "call-timeout", t.CallTimeout.String())
	flag(t.MemoryBytes != 0, "memory-bytes", strconv.FormatInt(t.MemoryBytes, 10))
	flag(t.Tasks != 0, "tasks", strconv.Itoa(t.Tasks))
	return words
}

// quoted returns words as a shell reads them.
func quoted(words []string) string {
	all := slices.Clone(words)
	for i, word := range all {
		if word == "" || strings.ContainsFunc(word, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%", r)
		}) {
			all[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(all, " ")
}

// printOutput writes the last lines that a plugin has printed, for a failure.
func printOutput(w io.Writer, printed *host.Output) {
	lines, all := printed.Lines()
	if all == 0 {
		return
	}
	fmt.Fprintf(w, "Printed by the plugin, the last %d of %s:\n", len(lines), plural(all, "line"))
	for _, line := range lines {
		fmt.Fprint(w, "  ")
		paragraph(w, len("  "), line)
	}
}

// readSettings reads a file of settings. Without a path there are none.
func readSettings(path string) (map[string]any, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var settings map[string]any
	if err := yaml.Unmarshal(text, &settings); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return settings, nil
}

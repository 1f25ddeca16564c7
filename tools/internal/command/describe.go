// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/quorate/quorate/config"
	configfield "github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// What plugins say of their settings, for the commands about files: each plugin is started as a node starts it, is
// asked for the schema of its settings, and ends. None is configured.

// heldToSchemas starts the plugins of files, and holds the settings that the files have to what each plugin says. It
// returns the faults, and what a plugin could not say as warnings. What plugins print goes to the writer if they do not
// start.
func heldToSchemas(stderr io.Writer, files ...string) (faults, warnings config.Errors, err error) {
	f, all, err := pluginsOf(files...)
	if err != nil {
		return nil, nil, err
	}
	locate := func(err error) config.Errors {
		located, _ := errorsOf(f.Locate(err))
		return located
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		key := "plugins." + name
		d, err := declared(stderr, name, all[name])
		switch {
		case err != nil:
			faults = append(faults, locate(configfield.Errorf(key, "%w", err))...)
			continue
		case d.Fault != nil:
			warnings = append(warnings, locate(configfield.Errorf(key, "what it says of its settings cannot be used, and they are not checked: %w", d.Fault))...)
		case d.Schema == nil:
			warnings = append(warnings, locate(configfield.Errorf(key, "does not say which settings it takes, so that they are not checked"))...)
		}
		if m := d.Manifest; m.Name != "" && m.Policy != all[name].Policy {
			faults = append(faults, locate(configfield.Errorf(key+".policy", "the plugin is for %s", m.Policy))...)
		}
		refused := d.Check(all[name].Settings)
		wrong, ok := errors.AsType[plugins.SettingErrors](refused)
		if refused != nil && !ok {
			warnings = append(warnings, locate(configfield.Errorf(key, "what it says of its settings cannot be used, and they are not checked: %w", refused))...)
		}
		for _, one := range wrong {
			faults = append(faults, locate(configfield.Within(key+".settings", one))...)
		}
	}
	return faults, warnings, nil
}

// declared starts a plugin and returns what it says of itself.
func declared(stderr io.Writer, name string, cfg plugins.Config) (host.Declaration, error) {
	limit := checkTimeout + cfg.WithDefaults().StartTimeout
	if cfg.Debug {
		limit = math.MaxInt64
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	printed := new(host.Output)
	d, err := host.Describe(ctx, name, cfg, host.WithOutput(printed))
	if err != nil {
		printOutput(stderr, printed)
	}
	return d, err
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/process"
)

// confinementOf returns what a process of the configuration may have and do.
func confinementOf(cfg plugins.Config) process.Confinement {
	limits := cfg.Limits.WithDefaults()
	return process.Confinement{
		MemoryBytes: max(0, limits.MemoryBytes), Tasks: max(0, limits.Tasks),
		User: cfg.User, Group: cfg.Group, NewPrivileges: cfg.NewPrivileges,
	}
}

// Unenforced returns what this system, or the user of this process, does not keep of a
// plugin's configuration, each with its key, joined; nil if it keeps everything. Limits that
// are not kept do no harm to the plugin: the node starts, and they are not there. A user that
// cannot be had is a fault: the plugin does not start.
func (h *Host) Unenforced(cfg plugins.Config) error {
	var lacks []error
	for _, l := range confinementOf(cfg).Lacks() {
		lacks = append(lacks, field.Errorf(l.Key, "%s", l.Reason))
	}
	return errors.Join(lacks...)
}

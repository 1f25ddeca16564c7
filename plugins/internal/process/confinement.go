// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import "runtime"

// Confinement is what a process may have and do. The zero value limits only its
// privileges.
type Confinement struct {
	// MemoryBytes is how much memory for data each process may have; 0 is no limit.
	MemoryBytes int64
	// Tasks is how many processes and threads the process may have with everything that
	// it starts; 0 is no limit.
	Tasks int
	// User and Group are whom the process runs as, by name or number; empty means the user
	// and the group of the host.
	User, Group string
	// NewPrivileges permits programs that have more rights than who runs them.
	NewPrivileges bool
}

// UnmetSetting is a setting of a [Confinement] that this system does not keep.
type UnmetSetting struct {
	Key    string // Of the configuration of a plugin.
	Reason string
}

// Lacks returns what this system, with the rights of this process, does not keep of a
// confinement.
func (c Confinement) Lacks() []UnmetSetting {
	var lacks []UnmetSetting
	lack := func(wanted bool, key string) {
		if wanted {
			lacks = append(lacks, UnmetSetting{key, "is not kept on " + runtime.GOOS + ", where the system offers nothing for it"})
		}
	}
	lack(c.MemoryBytes > 0 && !limitsMemory, "limits.memory-bytes")
	lack(c.Tasks > 0 && !limitsTasks, "limits.tasks")
	lack(!c.NewPrivileges && !limitsPrivileges, "new-privileges")
	return append(lacks, c.lacksOfUser()...)
}

// lacksOfUser returns why the process cannot run as the user and the group.
func (c Confinement) lacksOfUser() []UnmetSetting {
	key := "user"
	switch {
	case c.User == "" && c.Group == "":
		return nil
	case c.User == "":
		key = "group"
	}
	if _, err := c.identity(); err != nil {
		return []UnmetSetting{{key, err.Error()}}
	}
	if !mayChangeUser() {
		return []UnmetSetting{{key, "takes a node with the rights of root; with those of this user, the plugin does not start"}}
	}
	return nil
}

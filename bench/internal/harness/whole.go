// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/bench/internal/figure"
)

// Whole returns what is wrong with groups: every floor that a figure names is measured before it in the same group, the
// names in a group are unique, and a process can play the role of each experiment.
func Whole(groups []Group) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for _, g := range groups {
		names := make(map[string]bool)
		for _, e := range g.Experiments {
			if e.Measure == nil {
				fault("nothing measures %s", g.Role(e))
			}
			for _, f := range e.Figures {
				if names[f.Name] {
					fault("%s is twice in %s", f.Name, g.Name)
				}
				names[f.Name] = true
				if f.Better != figure.Higher && f.Better != figure.Lower {
					fault("which way %s is better is not said", f.Name)
				}
				for _, floor := range f.Floors {
					if !names[floor] {
						fault("%s stands on %s, which is not measured before it", f.Name, floor)
					}
				}
			}
		}
	}
	return errors.Join(faults...)
}

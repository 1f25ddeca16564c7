// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quorate/quorate/membership/internal/protocol"
)

// Setting is a setting of a component, or of the program, that members compare with
// their own when a node joins, see [WithSettings].
type Setting struct {
	// Key is the dotted key of the setting as in a configuration file, such as
	// "catalog.replicas", at most 128 bytes. Its section is none of the sections of
	// [Config], which are compared anyway.
	Key string

	// Value is the value of the setting in canonical text of 1 to 1024 bytes. A node that
	// lacks the setting differs from a node with any value.
	Value string

	// MustEqual says that nodes with different values must not be in one cluster: the
	// joining node is refused, with the key and both values. Otherwise both nodes are
	// warned, and the node joins.
	MustEqual bool
}

// maxSettings bounds the settings of [WithSettings]: half of what a join request has
// room for, so that membership's own settings can grow.
const maxSettings = protocol.MaxSettings / 2

// comparedSettings returns settings in the form that the machine compares.
func comparedSettings(settings []Setting) ([]protocol.Setting, error) {
	if len(settings) > maxSettings {
		return nil, fmt.Errorf("WithSettings gives %d settings, at most %d are compared", len(settings), maxSettings)
	}
	compared := make([]protocol.Setting, 0, len(settings))
	var faults []error
	for _, s := range settings {
		if err := s.validate(); err != nil {
			faults = append(faults, fmt.Errorf("WithSettings gives the setting %q, %w", s.Key, err))
		}
		if slices.ContainsFunc(compared, func(p protocol.Setting) bool { return p.Key == s.Key }) {
			faults = append(faults, fmt.Errorf("WithSettings gives the setting %q twice", s.Key))
		}
		class := protocol.ShouldEqual
		if s.MustEqual {
			class = protocol.MustEqual
		}
		compared = append(compared, protocol.Setting{Key: s.Key, Value: s.Value, Class: class})
	}
	return compared, errors.Join(faults...)
}

// validate reports what keeps a setting from being compared.
func (s Setting) validate() error {
	section, rest, _ := strings.Cut(s.Key, ".")
	switch {
	case section == "" || rest == "":
		return errors.New("whose key is not a section, a dot and a name")
	case slices.Contains([]string{"cluster", "node", "membership", "transport", "downing"}, section):
		return fmt.Errorf("whose section %s is compared by membership itself", section)
	case len(s.Key) > protocol.MaxKeyBytes || len(s.Value) > protocol.MaxTextBytes:
		return fmt.Errorf("whose key has %d bytes and whose value has %d: at most %d and %d can be compared",
			len(s.Key), len(s.Value), protocol.MaxKeyBytes, protocol.MaxTextBytes)
	case s.Value == "":
		return errors.New("whose value is empty: that is what a node has that lacks the setting")
	case !utf8.ValidString(s.Key) || !utf8.ValidString(s.Value):
		return errors.New("whose key or value is not UTF-8")
	}
	return nil
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// MethodStatic is the name of the configured list in [Config.Methods].
const MethodStatic = "static"

// Static is a fixed list of contact points, the answer to every [Query]. It
// resolves nothing. It is immutable and safe for concurrent use; the zero value
// is the empty list.
type Static struct {
	targets []Target
}

var (
	_ Discovery = (*Static)(nil)
	_ Classed   = (*Static)(nil)
)

// NewStatic reads a list of "host:port", see [ParseTarget]. The order is kept,
// and entries that repeat an earlier one are left out. The error reports each entry that is
// wrong, with its index from 0, and wraps [ErrBadTarget].
func NewStatic(endpoints []string) (*Static, error) {
	s := new(Static)
	seen := make(map[Target]bool, len(endpoints))
	var faults []error
	for i, text := range endpoints {
		t, err := ParseTarget(text)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("endpoint %d: %w", i, err))
		case !seen[t]:
			seen[t] = true
			s.targets = append(s.targets, t)
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return s, nil
}

// Class says that the list is the same at any time.
func (s *Static) Class() Class { return Class{Pure: true} }

// Lookup returns the list. The error is that of a context that has ended.
func (s *Static) Lookup(ctx context.Context, _ Query) (Targets, error) {
	if err := ctx.Err(); err != nil {
		return Targets{}, fmt.Errorf("discovery: static: %w", err)
	}
	if len(s.targets) == 0 {
		return Targets{Reason: "static: the configured list is empty"}, nil
	}
	return Targets{List: slices.Clone(s.targets), Reason: "static: the configured list"}, nil
}

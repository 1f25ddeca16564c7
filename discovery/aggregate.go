// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Method is a [Discovery] with the name by which a configuration selects it.
type Method struct {
	Name      string
	Discovery Discovery
}

// LookupError is the error of one method of an [Aggregate].
type LookupError struct {
	// Method is the name of the method.
	Method string
	// Err is what went wrong.
	Err error
}

// Error names the method.
func (e *LookupError) Error() string { return fmt.Sprintf("discovery: %s: %v", e.Method, e.Err) }

// Unwrap returns Err.
func (e *LookupError) Unwrap() error { return e.Err }

// Aggregate asks several methods in order, until one finds something. A method
// that fails, finds nothing, takes longer than the time limit, or gives an answer
// that is not valid is passed over. An Aggregate remembers nothing from one lookup to
// the next. It is immutable, and as safe for concurrent use as its methods are.
type Aggregate struct {
	limit   time.Duration
	methods []Method
}

var _ Discovery = (*Aggregate)(nil)

// NewAggregate returns the aggregate of these methods, each of which may take as
// long as limit for a lookup. The error reports every fault: no method at all, a name
// that is empty or used twice, a method without an implementation, a limit that is not
// above zero.
func NewAggregate(limit time.Duration, methods ...Method) (*Aggregate, error) {
	var faults []error
	if limit <= 0 {
		faults = append(faults, fmt.Errorf("discovery: the time limit %v is not above 0s", limit))
	}
	if len(methods) == 0 {
		faults = append(faults, errors.New("discovery: no method given"))
	}
	seen := make(map[string]bool, len(methods))
	for i, m := range methods {
		switch {
		case m.Name == "":
			faults = append(faults, fmt.Errorf("discovery: method %d has no name", i))
		case seen[m.Name]:
			faults = append(faults, fmt.Errorf("discovery: method %q is given twice", m.Name))
		case m.Discovery == nil:
			faults = append(faults, fmt.Errorf("discovery: method %q has no implementation", m.Name))
		}
		seen[m.Name] = true
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return &Aggregate{limit: limit, methods: slices.Clone(methods)}, nil
}

// Lookup asks the methods in order and returns the first answer that is valid
// and not empty. When there is none, it returns an empty answer if every method
// said that there are no contact points, and otherwise the errors of all methods that
// failed, each a [LookupError]. It asks no further method when its context ends.
//
// The TTL of the answer is the least of the methods that were asked. It is 0 if one of
// them failed, since that method may answer at any moment.
func (a *Aggregate) Lookup(ctx context.Context, q Query) (Targets, error) {
	var faults []error
	var reasons []string
	holds := time.Duration(math.MaxInt64)
	for _, m := range a.methods {
		if err := ctx.Err(); err != nil {
			return Targets{}, errors.Join(append(faults, &LookupError{Method: m.Name, Err: err})...)
		}
		found, err := a.ask(ctx, m, q)
		holds = min(holds, found.TTL) // With an error the answer is empty and its TTL 0.
		switch {
		case err != nil:
			faults = append(faults, &LookupError{Method: m.Name, Err: err})
			reasons = append(reasons, fmt.Sprintf("%s: %v", m.Name, err))
		case len(found.List) > 0:
			found.Reason = strings.Join(append(reasons, m.Name+": "+found.Reason), "; ")
			found.TTL = holds
			return found, nil
		default:
			reasons = append(reasons, m.Name+": found none: "+found.Reason)
		}
	}
	if len(faults) > 0 {
		return Targets{}, errors.Join(faults...)
	}
	return Targets{Reason: strings.Join(reasons, "; "), TTL: holds}, nil
}

func (a *Aggregate) ask(ctx context.Context, m Method, q Query) (Targets, error) {
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	found, err := m.Discovery.Lookup(ctx, q)
	if err != nil {
		return Targets{}, err
	}
	if found.TTL < 0 {
		return Targets{}, fmt.Errorf("the answer holds for %v", found.TTL)
	}
	list, err := Distinct(found.List)
	if err != nil {
		return Targets{}, err
	}
	found.List = list
	return found, nil
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package field

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A single fault ([Error]) and what it is about ([Of], [Related]); then lists of faults: taken apart ([Parts]), put
// below a section ([Within]) and collected ([Faults]).

// Error is the fault of one field of a configuration.
type Error struct {
	// Key is the key of the field as in a file, with dots between levels, relative to
	// the struct that was validated: "failure-detector.threshold".
	Key string
	// Reason says what is wrong and what would be right, without the key.
	Reason string
	// Err is the error behind the reason, for [errors.Is] and [errors.As]. It may be
	// nil.
	Err error
	// Others are the keys of other fields that the reason is about, relative to the same struct as Key: the values of the
	// two do not fit one another. See [Relate].
	Others []string
}

// Errorf returns an [Error]. An error that the format wraps with %w is in its chain.
func Errorf(key, format string, values ...any) error {
	err := fmt.Errorf(format, values...)
	return &Error{Key: key, Reason: err.Error(), Err: err}
}

// Error returns "key: reason", and the reason alone for a fault of the whole struct, which has no key.
func (e *Error) Error() string {
	if e.Key == "" {
		return e.Reason
	}
	return e.Key + ": " + e.Reason
}

// Field returns the key of the field as in a file.
func (e *Error) Field() string { return e.Key }

// Unwrap returns the error behind the reason.
func (e *Error) Unwrap() error { return e.Err }

// Related returns the keys of other fields that the reason is about.
func (e *Error) Related() []string { return e.Others }

// Related returns the keys of other fields that a single fault is about, those of the first error in its chain that has
// a method Related() []string.
func Related(err error) []string {
	var among interface{ Related() []string }
	if errors.As(err, &among) {
		return among.Related()
	}
	return nil
}

// Relate returns faults that are about the values of other fields too: one that is not reported while one of these
// values has a fault of its own, and that is shown where the first of them stands that is set, if its own field is not.
// It returns nil for nil.
func Relate(err error, others ...string) error {
	var faults Faults
	for _, part := range Parts(err) {
		key, reason := Of(part)
		faults.Add(&Error{Key: key, Reason: reason, Err: part, Others: slices.Concat(Related(part), others)})
	}
	return faults.Err()
}

// Of returns the key and the reason of a single fault: of the first error in its chain
// that has a method Field() string. If no error has, the key is empty and the reason
// is the whole text.
func Of(err error) (key, reason string) {
	var pointer interface{ Field() string }
	if errors.As(err, &pointer) {
		key = pointer.Field()
	}
	if key == "" {
		return "", err.Error()
	}
	return key, strings.TrimPrefix(err.Error(), key+": ")
}

// Parts returns the single faults from which err was joined, at any depth; none for
// nil. An error that points at a field is one fault, whatever it wraps.
func Parts(err error) []error {
	if err == nil {
		return nil
	}
	_, pointed := err.(interface{ Field() string })
	joined, ok := err.(interface{ Unwrap() []error })
	if pointed || !ok {
		return []error{err}
	}
	var parts []error
	for _, part := range joined.Unwrap() {
		parts = append(parts, Parts(part)...)
	}
	return parts
}

// Within returns the faults of a section, with the key of the section before the key
// of each fault; nil for nil. A fault without a key gets the key of the section.
func Within(section string, err error) error {
	var faults Faults
	for _, part := range Parts(err) {
		key, reason := Of(part)
		if key != "" {
			key = "." + key
		}
		var others []string
		for _, other := range Related(part) {
			others = append(others, section+"."+other)
		}
		faults.Add(&Error{Key: section + key, Reason: reason, Err: part, Others: others})
	}
	return faults.Err()
}

// Faults collects the faults of a configuration in the order in which they are found.
// The zero value is empty.
type Faults struct{ found []error }

// Refuse adds an [Error] if bad is true.
func (f *Faults) Refuse(bad bool, key, format string, values ...any) {
	if bad {
		f.Add(Errorf(key, format, values...))
	}
}

// Relate adds an [Error] if bad is true, which says that the value of a field does not fit that of another one, unless
// either has a fault: of a value that is wrong by itself nothing more is to be said. It is called after what looks at
// each value alone.
func (f *Faults) Relate(bad bool, key, other, format string, values ...any) {
	for _, fault := range f.found {
		if found, _ := Of(fault); found == key || found == other {
			return
		}
	}
	if bad {
		f.Add(Relate(Errorf(key, format, values...), other))
	}
}

// Add adds faults, and the parts of a joined fault one by one; it ignores nil.
func (f *Faults) Add(faults ...error) {
	for _, fault := range faults {
		f.found = append(f.found, Parts(fault)...)
	}
}

// Err returns all faults, joined by [errors.Join]; nil without a fault.
func (f *Faults) Err() error { return errors.Join(f.found...) }

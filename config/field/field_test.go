// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package field_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config/field"
)

// foreign is an error that points at a key without using this package.
type foreign struct{ key, text string }

func (f foreign) Error() string { return f.text }
func (f foreign) Field() string { return f.key }

func TestAFaultSaysKeyReasonAndCause(t *testing.T) {
	err := field.Errorf("address", "%q: %w", "x", io.EOF)
	var fault *field.Error
	require.ErrorAs(t, err, &fault)
	require.Equal(t, "address", fault.Field())
	require.Equal(t, `"x": EOF`, fault.Reason)
	require.EqualError(t, err, `address: "x": EOF`)
	require.ErrorIs(t, err, io.EOF)
}

func TestFaultsAreJoinedInTheOrderFound(t *testing.T) {
	var none field.Faults
	none.Refuse(false, "a", "is bad")
	none.Add(nil)
	require.NoError(t, none.Err())

	var some field.Faults
	some.Refuse(true, "b", "%d is below 1", 0)
	some.Add(field.Errorf("a", "is empty"), nil)
	require.EqualError(t, some.Err(), "b: 0 is below 1\na: is empty")
	var again field.Faults
	again.Add(some.Err())
	require.Equal(t, some.Err(), again.Err(), "one list, not a list in a list")
}

// The section comes before the key of a fault, whatever type the fault has, and the
// fault is still in the chain.
func TestASectionComesBeforeTheKeysOfItsFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault error
		want  string
	}{
		"a fault of this package": {field.Errorf("size", "0 is below 1"), "limits.size: 0 is below 1"},
		"a section in a section":  {field.Within("inner", field.Errorf("size", "is 0")), "limits.inner.size: is 0"},
		"a foreign fault":         {foreign{"size", "size: is 0"}, "limits.size: is 0"},
		"a text without its key":  {foreign{"size", "is 0"}, "limits.size: is 0"},
		"a wrapped fault":         {fmt.Errorf("here: %w", foreign{"size", "is 0"}), "limits.size: here: is 0"},
		"an error without a key":  {io.EOF, "limits: EOF"},
		"a fault of the section":  {foreign{"", "is empty"}, "limits: is empty"},
		"several faults": {
			errors.Join(field.Errorf("a", "is 0"), errors.Join(nil, io.EOF, field.Errorf("b", "is 1"))),
			"limits.a: is 0\nlimits: EOF\nlimits.b: is 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := field.Within("limits", c.fault)
			require.EqualError(t, err, c.want)
			for _, part := range field.Parts(c.fault) {
				require.ErrorIs(t, err, part)
			}
		})
	}
	require.NoError(t, field.Within("limits", nil))
}

// Errors that a fault with a key wraps are its reason, and not faults of their own.
func TestAPointedFaultIsOnePart(t *testing.T) {
	err := field.Errorf("seed-nodes", "%w", errors.Join(io.EOF, io.ErrUnexpectedEOF))
	require.Equal(t, []error{err}, field.Parts(err))
	require.Empty(t, field.Parts(nil))
	key, reason := field.Of(err)
	require.Equal(t, "seed-nodes", key)
	require.Equal(t, "EOF\nunexpected EOF", reason)
	key, reason = field.Of(io.EOF)
	require.Empty(t, key)
	require.Equal(t, "EOF", reason)
}

// Two values that do not fit one another are a fault if neither is wrong by itself.
func TestValuesAreRelatedThatAreRightByThemselves(t *testing.T) {
	for _, wrong := range []string{"", "least", "most", "other"} {
		var faults field.Faults
		faults.Refuse(wrong != "", wrong, "is below 0")
		faults.Relate(true, "least", "most", "is above most")
		faults.Relate(false, "least", "other", "is above other")
		switch wrong {
		case "":
			require.EqualError(t, faults.Err(), "least: is above most")
		case "other":
			require.EqualError(t, faults.Err(), "other: is below 0\nleast: is above most")
		default:
			require.EqualError(t, faults.Err(), wrong+": is below 0")
		}
	}
}

// A fault about two values names both, also below a section, and keeps its cause.
func TestAFaultNamesTheOtherValuesThatItIsAbout(t *testing.T) {
	require.NoError(t, field.Relate(nil, "most"))
	err := field.Within("limits", field.Relate(field.Errorf("least", "does not fit: %w", io.EOF), "most", "other"))
	require.EqualError(t, err, "limits.least: does not fit: EOF")
	require.Equal(t, []string{"limits.most", "limits.other"}, field.Related(err))
	require.ErrorIs(t, err, io.EOF)
	require.Empty(t, field.Related(io.EOF))
}

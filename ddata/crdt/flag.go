// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

// Flag is a switch that is off until someone enables it, and then on for ever (Shapiro et
// al. 2011, section 3.2, without disable: the state is the join of booleans). Its zero
// value is off.
type Flag struct{ on, pending bool }

var (
	_ Value[Flag]  = Flag{}
	_ Differ[Flag] = Flag{}
)

// Enable returns the flag that is on. It takes no origin, since it makes no difference which one has enabled it.
func (f Flag) Enable() Flag { return Flag{true, f.pending || !f.on} }

// Enabled reports whether the flag is on.
func (f Flag) Enabled() bool { return f.on }

// TypeName is "flag".
func (f Flag) TypeName() string { return "flag" }

// Merge returns the flag that is on if either is.
func (f Flag) Merge(other Flag) Flag { return Flag{on: f.on || other.on} }

// Delta returns the enabled flag if it was enabled since Settled.
func (f Flag) Delta() (Flag, bool) { return Flag{on: f.pending}, f.pending }

// Settled returns the flag without pending delta.
func (f Flag) Settled() Flag { return Flag{on: f.on} }

// Size returns the bytes of memory the flag takes.
func (f Flag) Size() int { return sizeOf(f) }

// AppendBinary appends the canonical encoding. It does not fail.
func (f Flag) AppendBinary(dst []byte) ([]byte, error) {
	if f.on {
		return append(dst, version, 1), nil
	}
	return append(dst, version, 0), nil
}

// UnmarshalBinary decodes what AppendBinary has written.
func (f *Flag) UnmarshalBinary(b []byte) error {
	r := newReader(b)
	on := r.uint(1) == 1
	if err := r.end(); err != nil {
		return err
	}
	*f = Flag{on: on}
	return nil
}

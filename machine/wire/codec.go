// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

// The table of a message is a function with a row for each field ([Uint], [Text], [Message] ... in rows.go and
// lists.go). Append walks it once, and each row appends its field. Read has the first field of the bytes at hand and
// walks the table: a row of its number reads it and takes the next one to hand, so that one walk reads all fields that
// stand in the order of the rows. What no row has read after a whole walk is a field of a later version: a table with a
// row [Keep] keeps it, another one passes it over.

// Codec walks over the table of a message, to write it or to read it. It is valid as long as [Append] or [Read] runs,
// and for one goroutine.
type Codec struct {
	cursor

	reading bool
	out     []byte // What was written; of a message that is read, the fields without a row that are kept.
	budget  Budget // Of the whole message that is read.
	err     error  // The first one.
}

// cursor is where a codec is in the message that it reads.
type cursor struct {
	at    Number // The number of the field at hand; 0 if there is none, also for a codec that writes or has failed.
	most  uint32 // The largest number of bytes of fields without a row that are kept.
	field Field
	rest  []byte // What follows the field.
	in    []byte // The whole message.
	came  uint64 // A bit for the number of each list and message that has been read.

	unknown *string // Where fields without a row are kept; nil: they are passed over.
}

// MaxTable is the highest number that a list or a message in a table may have.
const MaxTable = 63

// Append appends a message, which the table does not change. It returns dst, and the error, if a row has called
// [Codec.Fail].
func Append[T any](dst []byte, m *T, table func(*T, *Codec)) ([]byte, error) {
	c := Codec{out: dst}
	table(m, &c)
	if c.err != nil {
		return dst, c.err
	}
	return c.out, nil
}

// Read reads a message into the zero value of its type, and keeps no part of b. Its lists of texts and messages share
// the budget that [BudgetOf] gives. After an error, which wraps [ErrMalformed] unless a row has failed with another,
// the message is in part.
func Read[T any](b []byte, m *T, table func(*T, *Codec)) error {
	budget := BudgetOf(b)
	return ReadIn(&budget, b, m, table)
}

// ReadIn is [Read] for a message that is read in several steps, which share the budget: it takes its lists off that.
func ReadIn[T any](budget *Budget, b []byte, m *T, table func(*T, *Codec)) error {
	c := Codec{reading: true, budget: *budget}
	walk(&c, b, m, table)
	*budget = c.budget
	return c.err
}

// walk reads a message, which may be inside another.
func walk[T any](c *Codec, b []byte, m *T, table func(*T, *Codec)) {
	c.cursor = cursor{rest: b, in: b}
	before := len(c.out) // What the message around this one keeps.
	c.next()
	for c.at != 0 {
		left := len(c.rest)
		table(m, c)
		if c.at != 0 && len(c.rest) == left {
			c.keep(before)
			c.next()
		}
	}
	if len(c.out) > before {
		*c.unknown, c.out = string(c.out[before:]), c.out[:before]
	}
}

// keep keeps the field at hand, for which there is no row, if the table has a row [Keep]. The first bytes of what was
// kept, before of them, are those of the message around this one.
func (c *Codec) keep(before int) {
	if c.unknown == nil {
		return
	}
	if len(c.out)-before+len(c.field.Raw) > int(c.most) {
		c.Fail(Malformed("more than %d bytes of fields that this version does not know", c.most))
		return
	}
	c.out = append(c.out, c.field.Raw...)
}

// next takes the next field to hand.
func (c *Codec) next() {
	c.at = 0
	if len(c.rest) == 0 || c.err != nil {
		return
	}
	c.field, c.rest, c.err = Next(c.rest)
	if c.err == nil {
		c.at = c.field.Number
	}
}

// took ends the reading of the field at hand.
func (c *Codec) took(err error) {
	c.Fail(err)
	c.next()
}

// Reading reports whether the table is walked for reading, where a row may find nothing. A table asks it where the two
// directions differ.
func (c *Codec) Reading() bool { return c.reading }

// At reports whether a row of a number has something to do: always when the table writes, and when it reads if the
// field at hand has this number. What a table prepares for a row costs nothing for other fields if it asks before.
func (c *Codec) At(n Number) bool { return !c.reading || c.at == n }

// Fail ends the writing or the reading of the whole message with an error; the first one counts. It does nothing for
// nil.
func (c *Codec) Fail(err error) {
	if err != nil && c.err == nil {
		c.err, c.at = err, 0
	}
}

// Count returns how many fields of a number the message has that is read; see the function [Count].
func (c *Codec) Count(n Number) int { return Count(c.in, n) }

// once refuses a list or a message that comes a second time: all of its bytes would be read again for nothing.
func (c *Codec) once(n Number) {
	if c.came&bit(n) != 0 {
		c.Fail(Malformed("field %d comes twice", n))
		return
	}
	c.came |= bit(n)
}

// first reports whether no field of a number has come before.
func (c *Codec) first(n Number) bool {
	first := c.came&bit(n) == 0
	c.came |= bit(n)
	return first
}

func bit(n Number) uint64 {
	if n > MaxTable {
		panic("wire: a list or message in a table has a number above 63")
	}
	return 1 << n
}

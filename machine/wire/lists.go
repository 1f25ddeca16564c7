// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"math"

	"github.com/quorate/quorate/gossip"
)

// Rows of tables with lists, which are nil when they are empty. Numbers are packed in one field, as in protobuf; texts
// and messages have a field each, and share the [Budget] of the whole message. A list is made once, in
// the length that it will have: at most as long as the row says.

// Fixeds is a row with a list of at most most numbers in eight bytes each.
func Fixeds[T ~uint64](c *Codec, n Number, v *[]T, most int) (read bool) {
	if !c.reading {
		c.out = appendFixeds(c.out, n, *v)
		return false
	}
	for ; c.at == n; read = true {
		c.once(n)
		b, err := c.field.Data(math.MaxInt)
		if err == nil && len(b)%8 != 0 {
			err = Malformed("field %d has %d bytes of numbers with 8 each", n, len(b))
		}
		if c.Fail(err); c.within(n, len(b)/8, most) {
			*v = setFixeds[T](b)
		}
		c.took(nil)
	}
	return read
}

func appendFixeds[T ~uint64](b []byte, n Number, all []T) []byte {
	if len(all) == 0 {
		return b
	}
	b = AppendVarint(AppendTag(b, n, BytesType), uint64(8*len(all)))
	for _, v := range all {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

func setFixeds[T ~uint64](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	all := make([]T, len(b)/8)
	for i := range all {
		all[i] = T(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return all
}

// Uints is a row with a list of at most most numbers of variable length, each at most limit and at most what the type
// holds.
func Uints[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *Codec, n Number, v *[]T, limit uint64, most int) (read bool) {
	if !c.reading {
		c.out = appendUints(c.out, n, *v)
		return false
	}
	for ; c.at == n; read = true {
		c.once(n)
		b, err := c.field.Data(math.MaxInt)
		if c.Fail(err); c.within(n, numbers(b), most) {
			*v, err = setUints[T](b, n, min(limit, uint64(^T(0))))
			c.Fail(err)
		}
		c.took(nil)
	}
	return read
}

func appendUints[T ~uint8 | ~uint16 | ~uint32 | ~uint64](b []byte, n Number, all []T) []byte {
	if len(all) == 0 {
		return b
	}
	b, at := Begin(b, n)
	for _, v := range all {
		b = AppendVarint(b, uint64(v))
	}
	return End(b, at)
}

func setUints[T ~uint8 | ~uint16 | ~uint32 | ~uint64](b []byte, n Number, limit uint64) (all []T, err error) {
	if count := numbers(b); count > 0 {
		all = make([]T, 0, count)
	}
	for len(b) > 0 {
		v, size := Varint(b)
		if size == 0 || v > limit {
			return nil, Malformed("field %d has a number that is cut off, or over %d", n, limit)
		}
		all, b = append(all, T(v)), b[size:]
	}
	return all, nil
}

// numbers counts the numbers of variable length in a list.
func numbers(b []byte) (count int) {
	for _, x := range b {
		if x < 1<<7 { // The last byte of a number.
			count++
		}
	}
	return count
}

// Ints is [Uints] for numbers with a sign, as the int64 of protobuf.
func Ints[T ~int64](c *Codec, n Number, v *[]T, most int) (read bool) {
	if !c.reading {
		if len(*v) == 0 {
			return false
		}
		b, at := Begin(c.out, n)
		for _, x := range *v {
			b = AppendVarint(b, uint64(x))
		}
		c.out = End(b, at)
		return false
	}
	var all []uint64
	if read = Uints(c, n, &all, math.MaxUint64, most); read {
		*v = make([]T, len(all))
		for i, x := range all {
			(*v)[i] = T(x)
		}
	}
	return read
}

// Texts is a row with a list of at most most texts, each of at most limit bytes.
func Texts(c *Codec, n Number, v *[]string, limit, most int) (read bool) {
	if !c.reading {
		for _, text := range *v {
			c.out = append(AppendVarint(AppendTag(c.out, n, BytesType), uint64(len(text))), text...)
		}
		return false
	}
	for ; c.at == n; read = true {
		text, err := c.field.Text(limit)
		if c.Fail(err); begin(c, n, v, most) {
			*v = append(*v, text)
		}
		c.took(nil)
	}
	return read
}

// Messages is a row with a list of at most most messages. A check gets each of them when it was read, and may change
// it.
func Messages[T any](c *Codec, n Number, v *[]T, most int, table func(*T, *Codec), checks ...func(*T) error) (read bool) {
	if !c.reading {
		for i := range *v {
			writeMessage(c, n, &(*v)[i], table)
		}
		return false
	}
	for ; c.at == n; read = true {
		if begin(c, n, v, most) {
			var zero T
			*v = append(*v, zero)
			readMessage(c, &(*v)[len(*v)-1], table, checks)
		}
	}
	return read
}

// Stream is a row with a list of messages that are not kept as they are: each is read into v, which is zero before, and
// given to the visitor. It writes v; a table calls it for each message of the list.
func Stream[T any](c *Codec, n Number, v *T, table func(*T, *Codec), visit func(*T) error) (read bool) {
	if !c.reading {
		writeMessage(c, n, v, table)
		return false
	}
	for ; c.at == n; read = true {
		var zero T
		*v = zero
		readMessage(c, v, table, nil)
		if c.err == nil {
			c.Fail(visit(v))
		}
	}
	return read
}

// begin makes the list of all fields of a number at the first of them, and reports whether nothing has failed.
func begin[T any](c *Codec, n Number, v *[]T, most int) bool {
	if c.err == nil && c.first(n) {
		count := c.Count(n)
		if !c.within(n, count, most) {
			return false
		}
		all, err := List[T](&c.budget, count)
		*v = all
		c.Fail(err)
	}
	return c.err == nil
}

// within refuses a list that is too long, and reports whether nothing has failed.
func (c *Codec) within(n Number, count, most int) bool {
	if c.err == nil && count > most {
		c.Fail(Malformed("more than %d values of field %d", most, n))
	}
	return c.err == nil
}

// Nodes is a row with a list of at most most ids of nodes, each of them valid.
func Nodes(c *Codec, n Number, v *[]gossip.NodeID, most int) (read bool) {
	if !c.reading {
		for _, id := range *v {
			c.out = AppendNode(c.out, n, id)
		}
		return false
	}
	for ; c.at == n; read = true {
		var id gossip.NodeID
		c.Fail(SetNode(&id, &c.field))
		if begin(c, n, v, most) {
			*v = append(*v, id)
		}
		c.took(nil)
	}
	return read
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"math"

	"github.com/quorate/quorate/gossip"
)

// Rows of tables with one value. Each of them writes nothing for the zero value, and reports whether it has just read
// its field. Of a number or a text that comes twice the last one counts.

// Uint is a row with a number, at most limit and at most what the type holds.
func Uint[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *Codec, n Number, v *T, limit uint64) (read bool) {
	if !c.reading {
		c.out = AppendUint(c.out, n, uint64(*v))
		return false
	}
	for ; c.at == n; read = true {
		c.took(Set(v, &c.field, min(limit, uint64(^T(0)))))
	}
	return read
}

// Int is a row with a number that has a sign, as the int64 of protobuf: at most limit, as an unsigned number. So no
// negative one is read unless limit is [math.MaxUint64]. The limit must fit into the type.
func Int[T ~int | ~int32 | ~int64](c *Codec, n Number, v *T, limit uint64) (read bool) {
	if !c.reading {
		c.out = AppendUint(c.out, n, uint64(*v))
		return false
	}
	for ; c.at == n; read = true {
		u, err := c.field.Uint(limit)
		*v = T(u)
		c.took(err)
	}
	return read
}

// Fixed is a row with a number in eight bytes.
func Fixed[T ~uint64](c *Codec, n Number, v *T) (read bool) {
	if !c.reading {
		if *v != 0 {
			c.out = AppendFixed64(c.out, n, uint64(*v))
		}
		return false
	}
	for ; c.at == n; read = true {
		c.took(SetFixed(v, &c.field))
	}
	return read
}

// Bool is a row with a truth value.
func Bool(c *Codec, n Number, v *bool) (read bool) {
	if !c.reading {
		c.out = AppendBool(c.out, n, *v)
		return false
	}
	for ; c.at == n; read = true {
		c.took(SetBool(v, &c.field))
	}
	return read
}

// Text is a row with a text of at most limit bytes, which is the writer's to see to. See [Clipped].
func Text(c *Codec, n Number, v *string, limit int) (read bool) {
	if !c.reading {
		c.out = AppendString(c.out, n, *v)
		return false
	}
	for ; c.at == n; read = true {
		c.took(SetText(v, &c.field, limit))
	}
	return read
}

// Clipped is a row with a text of which the part is written that can be sent; see [Clip].
func Clipped(c *Codec, n Number, v *string, limit int) (read bool) {
	if !c.reading {
		c.out = AppendString(c.out, n, Clip(*v, limit))
		return false
	}
	return Text(c, n, v, limit)
}

// Name is a row with a name of at most limit bytes, see [gossip.IsName].
func Name(c *Codec, n Number, v *string, limit int) (read bool) {
	if !c.reading {
		c.out = AppendString(c.out, n, *v)
		return false
	}
	for ; c.at == n; read = true {
		c.took(SetName(v, &c.field, limit))
	}
	return read
}

// Data is a row with at most limit bytes, of which a copy is read, nil for none.
func Data(c *Codec, n Number, v *[]byte, limit int) (read bool) {
	if !c.reading {
		c.out = AppendBytes(c.out, n, *v)
		return false
	}
	for ; c.at == n; read = true {
		b, err := c.field.Data(limit)
		*v = nil
		if len(b) > 0 {
			*v = bytes.Clone(b)
		}
		c.took(err)
	}
	return read
}

// Node is a row with the id of a node, which is validated when it is read.
func Node(c *Codec, n Number, v *gossip.NodeID) (read bool) {
	if !c.reading {
		c.out = AppendNode(c.out, n, *v)
		return false
	}
	for ; c.at == n; read = true {
		c.took(SetNode(v, &c.field))
	}
	return read
}

// Keep is the last row of a message that its receiver passes on: fields without a row, those of later versions, are
// kept in v as they came and in their order, and written behind the others. More than limit bytes of them are
// malformed: whoever passes them on has them for as long as the message. A message that only its receiver reads has no
// such row.
func Keep(c *Codec, v *string, limit int) {
	if !c.reading {
		c.out = append(c.out, *v...)
		return
	}
	c.unknown, c.most = v, uint32(min(limit, math.MaxInt32))
}

// Row is a row whose field is written and read by hand. The function write appends nothing, or whole fields; what read
// gets is valid until it returns.
func Row(c *Codec, n Number, write func(b []byte) []byte, get func(f *Field) error) (read bool) {
	if !c.reading {
		c.out = write(c.out)
		return false
	}
	for ; c.at == n; read = true {
		c.took(get(&c.field))
	}
	return read
}

// Message is a row with a message, which is written even when it is empty, and malformed when it comes twice. A check
// gets the message when it was read, and may change it.
func Message[T any](c *Codec, n Number, v *T, table func(*T, *Codec), checks ...func(*T) error) (read bool) {
	if !c.reading {
		writeMessage(c, n, v, table)
		return false
	}
	for ; c.at == n; read = true {
		var zero T
		*v = zero
		c.once(n)
		readMessage(c, v, table, checks)
	}
	return read
}

// Sparse is [Message] for one that is left out when it is empty, like a number that is zero.
func Sparse[T any](c *Codec, n Number, v *T, table func(*T, *Codec), checks ...func(*T) error) (read bool) {
	if c.reading {
		return Message(c, n, v, table, checks...)
	}
	before := len(c.out)
	if !writeMessage(c, n, v, table) {
		c.out = c.out[:before]
	}
	return false
}

// Optional is [Message] for one that may be absent: the pointer is nil then, and of a new message if there is one.
func Optional[T any](c *Codec, n Number, v **T, table func(*T, *Codec), checks ...func(*T) error) (read bool) {
	if !c.reading {
		if *v != nil {
			writeMessage(c, n, *v, table)
		}
		return false
	}
	for ; c.at == n; read = true {
		*v = new(T)
		c.once(n)
		readMessage(c, *v, table, checks)
	}
	return read
}

// writeMessage writes a field with a message, and reports whether that has fields.
func writeMessage[T any](c *Codec, n Number, v *T, table func(*T, *Codec)) bool {
	b, at := Begin(c.out, n)
	c.out = b
	table(v, c)
	filled := len(c.out) > at
	c.out = End(c.out, at)
	return filled
}

// readMessage reads the message in the field at hand.
func readMessage[T any](c *Codec, v *T, table func(*T, *Codec), checks []func(*T) error) {
	b, err := c.field.Data(math.MaxInt)
	c.Fail(err)
	if c.err != nil {
		return
	}
	outer := c.cursor
	walk(c, b, v, table)
	c.cursor = outer
	for _, check := range checks {
		if c.err == nil {
			c.Fail(check(v))
		}
	}
	c.took(nil)
}

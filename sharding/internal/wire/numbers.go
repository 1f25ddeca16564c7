// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/quorate/quorate/machine/wire"

// A stream takes some 70 bytes to spell out, which is more than most messages, and more work to
// look up. So the parts of batches name a stream by a number, which the sender gives once and the
// host remembers:
//
//	generation 3:  5 = account/7 of node a ...  [messages]    defines the number
//	generation 3:  5                            [messages]    uses it
//
// What number a stream has is a function of the sender, the generation and the number, and never
// changes; so no order in which batches come, and no loss, makes a part one of another stream.
// A definition that is lost leaves parts that the host refuses: their messages come again, and
// what comes again is spelled out.

// numberOfStream is the field of a part with the number of its stream, and numberGeneration that
// of a batch with the generation of its numbers.
const (
	numberGeneration = 7
	numberOfStream   = 6
)

// MaxNumbers bounds the numbers of one generation.
const MaxNumbers = 1 << 16

// Numbering gives numbers to the streams from one node to another. A Numbering is for one
// goroutine at a time; the zero value gives no numbers, and streams are spelled out.
type Numbering struct {
	// Generation tells the numbers from all others that the node has given. A later
	// generation is higher.
	Generation uint64

	last uint32 // The last number that was given.
}

// Exhausted reports whether all numbers of the generation are given.
func (n *Numbering) Exhausted() bool { return n.last >= MaxNumbers }

// following returns the next number; 0 for none.
func (n *Numbering) following() uint32 {
	if n.Generation == 0 || n.Exhausted() {
		return 0
	}
	return n.last + 1
}

// naming is what an [Encoder] knows of the number of its stream. The zero value knows nothing.
type naming struct {
	generation uint64
	number     uint32
	beyond     uint64 // Messages below this place of the stream have been in a part.
}

// Forget says that the last part did not leave this node: its stream is spelled out, under
// another number.
func (e *Encoder) Forget() { e.named.number = 0 }

// Numbers are the streams of one sender, by their numbers, as its host knows them. The zero value
// knows none.
type Numbers struct {
	generation uint64
	pages      []*page // By the high bits of the number; nil where none is known.
}

// page holds the streams of numbers that follow each other; nil for those that are not known.
// Who defines a high number has a page made, and not a table of all.
type page [256]*stream

// begin says that a batch of a generation has come. A later generation ends the one before.
func (n *Numbers) begin(generation uint64) {
	if generation > n.generation {
		*n = Numbers{generation: generation}
	}
}

// define takes a number over from a part that spells its stream out. A part of an earlier
// generation defines nothing.
func (n *Numbers) define(generation uint64, number uint32, of *stream) error {
	if generation != n.generation || number == 0 {
		return nil
	}
	i, j := (number-1)/uint32(len(page{})), (number-1)%uint32(len(page{}))
	for int(i) >= len(n.pages) {
		n.pages = append(n.pages, nil)
	}
	if n.pages[i] == nil {
		n.pages[i] = new(page)
	}
	switch known := n.pages[i][j]; {
	case known == nil:
		n.pages[i][j] = of
	case *known != *of:
		return wire.Malformed("number %d is that of two streams", number)
	}
	return nil
}

// lookup returns the stream of a number from 1 on; nil if the number is not known, or that of an
// earlier generation.
func (n *Numbers) lookup(generation uint64, number uint32) *stream {
	i, j := (number-1)/uint32(len(page{})), (number-1)%uint32(len(page{}))
	if generation != n.generation || int(i) >= len(n.pages) || n.pages[i] == nil {
		return nil
	}
	return n.pages[i][j]
}

// name appends what says which stream the messages from a place on are of: the number that is
// in use, or the stream, with a number if there is one. Messages that were in a part before are
// always spelled out.
func (e *Encoder) name(dst []byte, seq uint64, by *Numbering) (_ []byte, number uint32) {
	n := &e.named
	known := n.number != 0 && n.generation == by.Generation
	if number = n.number; !known {
		number = by.following()
	}
	if !known || seq < n.beyond {
		dst = append(dst, e.stream...)
	}
	return wire.AppendUint(dst, numberOfStream, uint64(number)), number
}

// appended says that a part has the messages up to unsent, under a number that name returned.
func (e *Encoder) appended(number uint32, unsent uint64, by *Numbering) {
	by.last = max(by.last, number)
	e.named = naming{generation: by.Generation, number: number, beyond: max(e.named.beyond, unsent)}
}

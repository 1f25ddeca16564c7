// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package queuefile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strconv"

	"github.com/quorate/quorate/sharding/delivery"
)

// The form of a file comes first, its head next, then its records.
//
//	head    "quorate deliveries 3\n", salt (16 bytes), CRC-32C of both (4)
//	record  frame, body
//	frame   length of the body (4), CRC-32C of the body (4), tag (8)
//	body    kind (1), session (16), number (8), mark (8); of an entry also the length of its
//	        entity's id as a varint, that id, and the message
//
// Numbers are little-endian. The tag is the first eight bytes of the SHA-256 of the salt, the record's place in the
// file (8), and what is before the tag in the frame. Each file has a salt of its own: without it nobody can put a
// record into a message that would be taken for one of the queue, but by guessing 64 bits, and a copy of a record is
// none at another place. The tag covers the frame alone, so that the search for a record takes the same short time at
// each byte, whatever that search meets.

const (
	family  = "quorate deliveries "
	version = "3\n"
	title   = family + version

	saltBytes = 16
	sumBytes  = 4
	headBytes = len(title) + saltBytes + sumBytes

	tagAt      = 4 + 4     // Where the tag is in a frame.
	frameBytes = tagAt + 8 // Before each body.
	maxBody    = 1 << 26   // More than any entry has.

	kindEntry, kindRemoval = 1, 2
	markAt                 = 1 + 16 + 8 // Where the mark is in a body.
	idBytes                = markAt + 8 // Kind, session, number and mark, with which each body begins.
)

// Salt is sixteen random bytes, drawn for each file. Whoever may choose messages must not know them.
type Salt [saltBytes]byte

var errCut = errors.New("what was written here is not whole")

// appendHead appends the head of a file.
func appendHead(dst []byte, salt Salt) []byte {
	at := len(dst)
	dst = append(append(dst, title...), salt[:]...)
	return binary.LittleEndian.AppendUint32(dst, checksum(dst[at:]))
}

// saltOf returns the salt in the head of a file, or what is wrong with the head: errCut if only its end is missing.
func saltOf(head []byte) (Salt, error) {
	n := min(len(head), len(title))
	switch {
	case string(head[:n]) != title[:n] && ofAnotherVersion(head):
		return Salt{}, ErrFormat
	case string(head[:n]) != title[:n]:
		return Salt{}, ErrDamaged
	case len(head) < headBytes:
		return Salt{}, errCut
	case checksum(head[:headBytes-sumBytes]) != binary.LittleEndian.Uint32(head[headBytes-sumBytes:]):
		return Salt{}, ErrDamaged
	}
	return Salt(head[len(title):][:saltBytes]), nil
}

// ofAnotherVersion reports whether a head that is not of this version is that of a queue.
func ofAnotherVersion(head []byte) bool {
	rest, ok := bytes.CutPrefix(head, []byte(family))
	number, _, ended := bytes.Cut(rest, []byte("\n"))
	_, err := strconv.ParseUint(string(number), 10, 32)
	return ok && ended && err == nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// Record is an entry of a queue, or the removal of one.
type Record struct {
	ID      delivery.EntryID
	Removal bool   // It says that the entry was removed, and has no message.
	Mark    int64  // Up to where the file was synced when the record was written.
	To      string // The id of the entity.
	Message []byte
}

// Append appends the record in the form that it has at a place of a file with a salt.
func (r *Record) Append(dst []byte, salt Salt, at int64) []byte {
	begin := len(dst)
	dst = append(dst, make([]byte, frameBytes)...)
	kind := byte(kindEntry)
	if r.Removal {
		kind = kindRemoval
	}
	dst = append(append(dst, kind), r.ID.Session[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, r.ID.Number)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.Mark)) // Not negative.
	if !r.Removal {
		dst = binary.AppendUvarint(dst, uint64(len(r.To)))
		dst = append(append(dst, r.To...), r.Message...)
	}
	seal(dst[begin:], salt, at)
	return dst
}

// seal writes the frame of a record, whose body is there.
func seal(record []byte, salt Salt, at int64) {
	body := record[frameBytes:]
	binary.LittleEndian.PutUint32(record, uint32(len(body))) // At most maxBody, see Queue.Append.
	binary.LittleEndian.PutUint32(record[4:], checksum(body))
	binary.LittleEndian.PutUint64(record[tagAt:], tagOf(record, salt, at))
}

// tagOf returns the tag that a frame must have at a place of a file.
func tagOf(frame []byte, salt Salt, at int64) uint64 {
	var covered [saltBytes + 8 + tagAt]byte
	copy(covered[:], salt[:])
	binary.LittleEndian.PutUint64(covered[saltBytes:], uint64(at)) // Not negative.
	copy(covered[saltBytes+8:], frame[:tagAt])
	sum := sha256.Sum256(covered[:])
	return binary.LittleEndian.Uint64(sum[:])
}

// lengthOf returns the length of the body behind a frame at a place, of which some bytes are left, or false if that is
// no frame of the file.
func lengthOf(frame []byte, salt Salt, at, left int64) (int64, bool) {
	n := int64(binary.LittleEndian.Uint32(frame))
	ok := n >= idBytes && n <= min(maxBody, left) && binary.LittleEndian.Uint64(frame[tagAt:]) == tagOf(frame, salt, at)
	return n, ok
}

// intact reports whether a body is as it was when its frame was written.
func intact(frame, body []byte) bool { return checksum(body) == binary.LittleEndian.Uint32(frame[4:]) }

func idOf(body []byte) (id delivery.EntryID) {
	copy(id.Session[:], body[1:])
	id.Number = binary.LittleEndian.Uint64(body[17:])
	return id
}

// markOf returns up to where the file was synced when a record was written.
func markOf(body []byte) int64 { return int64(binary.LittleEndian.Uint64(body[markAt:])) } // As it was written, not negative.

// setMark changes the mark of a record, which must be sealed again.
func setMark(record []byte, mark int64) {
	binary.LittleEndian.PutUint64(record[frameBytes+markAt:], uint64(mark)) // Not negative.
}

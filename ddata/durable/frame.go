// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/quorate/quorate/ddata/durable/internal/disk"
)

// All files but the manifest consist of frames. A frame is a head, a payload and a
// check sum:
//
//	3 bytes "QDF" | kind 1 | length of the payload 4 | number 8 | sum of the head 4
//	payload
//	sum of head and payload 4
//
// Both sums begin with the tag of the file, a random number, so that bytes of an earlier file in the same place of the
// disk are no frame of this one. A frame is made in a buffer ([begin], [framing.end]) and read by a [scanner], which
// can also look for the next frame after damage.

// The kinds of frames.
const (
	headFrame  = 'H' // the first of a file
	batchFrame = 'B' // changes
	indexFrame = 'I' // the last of a run
)

const (
	headBytes  = 20
	sumBytes   = 4
	maxPayload = 1 << 30 // bytes: the length of the largest batch
	windowSize = 256 << 10
)

// errFrame is the error about bytes that are no frame.
var errFrame = errors.New("the check sum is wrong")

// castagnoli is the polynomial for which processors have an instruction. It finds every
// change of up to 32 neighbouring bits.
//
//nolint:gochecknoglobals // A table that nothing changes.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// framing is the check sum of a file's tag, with which the sums of its frames begin.
type framing uint32

func newFraming(tag uint64) framing {
	return framing(crc32.Checksum(binary.LittleEndian.AppendUint64(nil, tag), castagnoli))
}

// begin empties a buffer but for the room of a head; the caller appends the payload and
// calls end.
func begin(b []byte) []byte { return append(b[:0], make([]byte, headBytes)...) }

// end completes the frame that b begins with.
func (f framing) end(b []byte, kind byte, number uint64) []byte {
	head := b[:headBytes]
	copy(head, "QDF")
	head[3] = kind
	binary.LittleEndian.PutUint32(head[4:], uint32(len(b)-headBytes))
	binary.LittleEndian.PutUint64(head[8:], number)
	binary.LittleEndian.PutUint32(head[16:], crc32.Update(uint32(f), castagnoli, head[:16]))
	return binary.LittleEndian.AppendUint32(b, crc32.Update(uint32(f), castagnoli, b))
}

// frame is a frame that was read. The payload is valid until the scanner goes on.
type frame struct {
	kind    byte
	number  uint64
	payload []byte
}

// head reads the head at the start of b, which has headBytes at least, and returns the
// length of the whole frame, 0 if it is no head.
func (f framing) head(b []byte) (fr frame, size int64) {
	if string(b[:3]) != "QDF" || binary.LittleEndian.Uint32(b[16:]) != crc32.Update(uint32(f), castagnoli, b[:16]) {
		return fr, 0
	}
	length := binary.LittleEndian.Uint32(b[4:])
	if length > maxPayload {
		return fr, 0
	}
	return frame{kind: b[3], number: binary.LittleEndian.Uint64(b[8:])}, int64(length) + headBytes + sumBytes
}

// scanner reads the frames of a part of a file, one after the other.
type scanner struct {
	framing

	file   io.ReaderAt
	at     int64 // where the next frame begins
	end    int64 // where the part ends
	window []byte
	base   int64 // where the window begins in the file
}

// need returns n bytes of the file at s.at, which must be before s.end.
func (s *scanner) need(n int64) ([]byte, error) {
	if s.at < s.base || s.at+n > s.base+int64(len(s.window)) {
		size := min(max(n, windowSize), s.end-s.at)
		if int64(cap(s.window)) < size {
			s.window = make([]byte, size)
		}
		s.window = s.window[:size]
		s.base = s.at
		if read, err := s.file.ReadAt(s.window, s.at); int64(read) < size {
			s.window = s.window[:0]
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	from := s.at - s.base
	return s.window[from : from+n], nil
}

// next reads the next frame. It returns io.EOF at the end of the part and errFrame for
// bytes that are no frame; then the position has not moved.
func (s *scanner) next() (frame, error) {
	left := s.end - s.at
	if left == 0 {
		return frame{}, io.EOF
	}
	if left < headBytes+sumBytes {
		return frame{}, errFrame
	}
	b, err := s.need(headBytes)
	if err != nil {
		return frame{}, err
	}
	fr, size := s.head(b)
	if size == 0 || size > left {
		return frame{}, errFrame
	}
	if b, err = s.need(size); err != nil {
		return frame{}, err
	}
	body := len(b) - sumBytes
	if binary.LittleEndian.Uint32(b[body:]) != crc32.Update(uint32(s.framing), castagnoli, b[:body]) {
		return frame{}, errFrame
	}
	fr.payload = b[headBytes:body]
	s.at += size
	return fr, nil
}

// skip moves to the next frame behind damage at the present position, or to the end of
// the part, and returns how many bytes were skipped. Bytes that cannot be read are damage.
func (s *scanner) skip() (skipped int64) {
	from := s.at
	for s.at++; s.at+headBytes+sumBytes <= s.end; s.at++ {
		b, err := s.need(min(windowSize/2, s.end-s.at))
		if err != nil {
			s.at += min(blockSize, s.end-s.at) - 1
			continue
		}
		i := bytes.Index(b, []byte("QDF"))
		if i < 0 {
			s.at += int64(len(b)) - 3
			continue
		}
		s.at += int64(i)
		if s.isFrame() {
			return s.at - from
		}
	}
	s.at = s.end
	return s.at - from
}

// isFrame reports whether there is a frame at the present position.
func (s *scanner) isFrame() bool {
	at := s.at
	_, err := s.next()
	s.at = at
	return err == nil
}

// blockSize is the step past bytes that cannot be read, the usual size of a sector.
const blockSize = 4096

// whole returns a scanner over a file from a position on.
func (f framing) whole(file disk.File, from int64) (*scanner, error) {
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	return &scanner{framing: f, file: file, at: from, end: max(size, from)}, nil
}

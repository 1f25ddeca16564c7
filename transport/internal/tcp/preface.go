// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"io"
	"strings"
)

const (
	// Protocol is the name of this wire in the negotiation of TLS (RFC 7301).
	Protocol = "quorate-lane/1"

	// Preface is what each end sends first.
	Preface = Protocol + " preface\r\n"

	// http2 is what a client of HTTP/2 sends first (RFC 9113, section 3.4).
	http2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

	// record is the first byte of a TLS handshake (RFC 8446, section 5.1).
	record = 0x16
)

// Tongue is what an opener speaks, by its first bytes.
type Tongue int

// The tongues of openers.
const (
	Unknown Tongue = iota // None of the others, or nothing was said.
	Lane                  // This wire: the preface has been read.
	HTTP2                 // As gRPC does; there is more of its preface to read.
	TLS                   // A handshake of TLS.
)

// Recognize reads from an opener until its bytes tell what it speaks. It returns what it
// has read, at most as many bytes as the preface has. Other bytes than those of the
// preface are no error; the error is that of the connection when it ends before its
// bytes tell.
func Recognize(r io.Reader) (Tongue, []byte, error) {
	head := make([]byte, 0, len(Preface))
	for {
		n, err := r.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		switch {
		case len(head) > 0 && !strings.HasPrefix(Preface, string(head)):
			return tongue(head), head, nil
		case len(head) == len(Preface):
			return Lane, head, nil
		case err != nil:
			return Unknown, head, err
		}
	}
}

// tongue tells what is spoken by whoever begins otherwise than with the preface.
func tongue(head []byte) Tongue {
	switch {
	case strings.HasPrefix(http2, string(head)):
		return HTTP2
	case head[0] == record:
		return TLS
	default:
		return Unknown
	}
}

// Knock sends the preface and waits until the answer tells whether the other end speaks
// this wire. An error says that the connection ended before.
func Knock(rw io.ReadWriter) (bool, error) {
	if _, err := io.WriteString(rw, Preface); err != nil {
		return false, err
	}
	spoken, _, err := Recognize(rw)
	return spoken == Lane, err
}

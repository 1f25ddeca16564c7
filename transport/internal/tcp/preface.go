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

	// http2Preface is what a client of HTTP/2 sends first (RFC 9113, section 3.4).
	http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

	// handshakeRecord is the first byte of a TLS handshake: the type of its record (RFC 8446, section 5.1).
	handshakeRecord = 0x16
)

// OpenerProtocol is the protocol that the opener of a connection speaks, by its first bytes.
type OpenerProtocol int

// The protocols of openers.
const (
	Unknown OpenerProtocol = iota // None of the others, or nothing was said.
	Lane                          // This wire: the preface has been read.
	HTTP2                         // As gRPC does; there is more of its preface to read.
	TLS                           // A handshake of TLS.
)

// Recognize reads from an opener until its bytes tell what it speaks. It returns what it
// has read, at most as many bytes as the preface has. Other bytes than those of the
// preface are no error; the error is that of the connection when it ends before its
// bytes tell.
func Recognize(r io.Reader) (OpenerProtocol, []byte, error) {
	head := make([]byte, 0, len(Preface))
	for {
		n, err := r.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		switch {
		case len(head) > 0 && !strings.HasPrefix(Preface, string(head)):
			return protocolOf(head), head, nil
		case len(head) == len(Preface):
			return Lane, head, nil
		case err != nil:
			return Unknown, head, err
		}
	}
}

// protocolOf returns the protocol of an opener whose first bytes are not those of the preface.
func protocolOf(head []byte) OpenerProtocol {
	switch {
	case strings.HasPrefix(http2Preface, string(head)):
		return HTTP2
	case head[0] == handshakeRecord:
		return TLS
	default:
		return Unknown
	}
}

// ExchangePreface sends the preface and waits until the answer tells whether the other end speaks
// this wire. An error says that the connection ended before.
func ExchangePreface(rw io.ReadWriter) (bool, error) {
	if _, err := io.WriteString(rw, Preface); err != nil {
		return false, err
	}
	spoken, _, err := Recognize(rw)
	return spoken == Lane, err
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package multicast

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/quorate/quorate/discovery"
)

// The two datagrams, byte by byte:
//
//	query:  "QUM1" 1 nonce(8) length(1) service, zeros up to 1024 bytes
//	answer: "QUM1" 2 nonce(8) count(1) { length(1) "host:port" or ":port" }, at most 1024
//
// The digit in the first four bytes is the version: a query of another version is not
// answered.

const (
	magic      = "QUM1"
	kindQuery  = 1
	kindAnswer = 2
	nonceBytes = 8
	headBytes  = len(magic) + 1 + nonceBytes + 1

	// packetBytes is the size of a query, and the largest size of an answer. Every network
	// carries a datagram of that size in one piece.
	packetBytes     = 1024
	maxServiceBytes = 200
	maxAnnounce     = 16
	// maxTextBytes is the longest text, whose length is written as one byte.
	maxTextBytes = 255
)

var errPacket = errors.New("no datagram of this protocol")

// nonce is a random number that binds answers to the query of one lookup.
type nonce [nonceBytes]byte

func head(kind byte, n nonce, last int) []byte {
	b := make([]byte, 0, packetBytes)
	b = append(b, magic...)
	b = append(b, kind)
	b = append(b, n[:]...)
	return append(b, byte(last))
}

// split takes the head off a datagram and returns the last byte of the head and what
// follows it.
func split(packet []byte, kind byte) (n nonce, last int, rest []byte, err error) {
	if len(packet) < headBytes || len(packet) > packetBytes || !bytes.HasPrefix(packet, []byte(magic)) ||
		packet[len(magic)] != kind {
		return nonce{}, 0, nil, errPacket
	}
	copy(n[:], packet[len(magic)+1:])
	return n, int(packet[headBytes-1]), packet[headBytes:], nil
}

// packQuery writes a query, as large as its answer may be. The service is within its
// bound.
func packQuery(n nonce, service string) []byte {
	b := append(head(kindQuery, n, len(service)), service...)
	return b[:packetBytes] // Zeros from the beginning on.
}

// readQuery reads a query. A datagram that is smaller than the largest answer is no query.
func readQuery(packet []byte) (n nonce, service string, err error) {
	n, length, rest, err := split(packet, kindQuery)
	if err != nil || len(packet) != packetBytes || length == 0 || length > maxServiceBytes {
		return nonce{}, "", errPacket
	}
	return n, string(rest[:length]), nil
}

// packAnswer writes an answer. The announced texts are within their bounds.
func packAnswer(n nonce, announced []string) []byte {
	b := head(kindAnswer, n, len(announced))
	for _, text := range announced {
		b = append(b, byte(len(text)))
		b = append(b, text...)
	}
	return b
}

// answerBytes returns the length of the answer with these texts.
func answerBytes(announced []string) int {
	size := headBytes
	for _, text := range announced {
		size += 1 + len(text)
	}
	return size
}

// readAnswer reads an answer that came from an address.
func readAnswer(packet []byte, from netip.Addr) (nonce, []discovery.Target, error) {
	n, count, rest, err := split(packet, kindAnswer)
	if err != nil || count > maxAnnounce {
		return nonce{}, nil, errPacket
	}
	var list []discovery.Target
	for range count {
		if len(rest) == 0 || int(rest[0]) > len(rest)-1 {
			return nonce{}, nil, errPacket
		}
		text := string(rest[1 : 1+rest[0]])
		rest = rest[1+rest[0]:]
		target, err := contactPoint(text, from)
		if err != nil {
			return nonce{}, nil, err
		}
		list = append(list, target)
	}
	if len(rest) > 0 {
		return nonce{}, nil, errPacket
	}
	return n, list, nil
}

// contactPoint reads "host:port", or ":port" at an address.
func contactPoint(text string, from netip.Addr) (discovery.Target, error) {
	if port, ok := strings.CutPrefix(text, ":"); ok {
		text = net.JoinHostPort(from.Unmap().String(), port)
	}
	target, err := discovery.ParseTarget(text)
	if err != nil {
		return discovery.Target{}, fmt.Errorf("%w: %w", errPacket, err)
	}
	return target, nil
}

// checkAnnounced checks one text that is to be announced.
func checkAnnounced(text string) error {
	if len(text) > maxTextBytes {
		return fmt.Errorf("%s... has more than %d bytes", strconv.QuoteToASCII(text[:maxTextBytes/4]), maxTextBytes)
	}
	if strings.HasPrefix(text, ":") {
		text = "localhost" + text
	}
	if _, err := discovery.ParseTarget(text); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "discovery: ")) // It is about a setting, and names no package.
	}
	return nil
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// One question to the servers, until one of them answers. exchange goes through the
// servers in rounds; askServer decides how one server is asked: over UDP, over TCP where
// the answer does not fit or strangers answer, and without EDNS where the server is too old
// for it; once sends one query and waits for its answer.

const (
	// maxDatagramBytes is the largest datagram that is read. A server keeps to
	// udpAnswerBytes, which the query names; a longer datagram is cut off and malformed.
	maxDatagramBytes = 4096
	// maxStrangers is how many datagrams that do not answer the question are passed over.
	// More mean that an attacker guesses the id of the query; the question is put over TCP
	// then, where only the server can answer.
	maxStrangers = 16
	// lengthBytes is the size of the length that precedes each message over TCP.
	lengthBytes = 2
)

var errStrangers = errors.New("datagrams arrive that do not answer the question")

// serverError says why the answer of one server cannot be used, or why there is none.
type serverError struct {
	server netip.AddrPort
	err    error
}

func (e *serverError) Error() string { return e.server.String() + ": " + e.err.Error() }

func (e *serverError) Unwrap() error { return e.err }

// exchange asks the servers in turn and returns the first answer with records, or that there
// are none. The error names each server.
func (d *Discovery) exchange(ctx context.Context, r hostResolver, q dnsmessage.Question) (reply, error) {
	var faults []error
	for range d.config.Rounds {
		faults = faults[:0] // The faults of the last round are enough.
		for _, server := range r.servers {
			answer, err := d.askServer(ctx, server, q, r.stream)
			if err == nil {
				return answer, nil
			}
			faults = append(faults, &serverError{server: server, err: err})
			if ended := ctx.Err(); ended != nil {
				return reply{}, errors.Join(append(faults, ended)...)
			}
		}
	}
	return reply{}, errors.Join(faults...)
}

// askServer puts a question to one server: over UDP, over TCP if the answer is truncated or
// strangers answer, and without EDNS if the server does not know it. A refusal is an error.
func (d *Discovery) askServer(ctx context.Context, server netip.AddrPort, q dnsmessage.Question, stream bool) (reply, error) {
	network, extended := "udp", true
	if stream {
		network = "tcp"
	}
	for {
		answer, err := d.once(ctx, network, server, q, extended)
		switch {
		case network == "udp" && (errors.Is(err, errStrangers) || err == nil && answer.truncated):
			network = "tcp"
		case err != nil:
			return reply{}, err
		case extended && (answer.code == dnsmessage.RCodeFormatError || answer.code == dnsmessage.RCodeNotImplemented):
			extended = false
		default:
			return answer, answer.refusal()
		}
	}
}

// refusal says why a reply is no answer to the question, so that another server has to be
// asked; nil for an answer.
func (r *reply) refusal() error {
	switch {
	case r.truncated:
		return errors.New("the answer is truncated over TCP too")
	case r.referral:
		return errors.New("it knows nothing of the name and does not ask others")
	case r.code != dnsmessage.RCodeSuccess && r.code != dnsmessage.RCodeNameError:
		return fmt.Errorf("it answers %s", codeText(r.code))
	}
	return nil
}

func codeText(code dnsmessage.RCode) string {
	switch code {
	case dnsmessage.RCodeServerFailure:
		return "SERVFAIL"
	case dnsmessage.RCodeRefused:
		return "REFUSED"
	case dnsmessage.RCodeFormatError:
		return "FORMERR"
	case dnsmessage.RCodeNotImplemented:
		return "NOTIMP"
	default:
		return fmt.Sprintf("code %d", code)
	}
}

// once sends one query to one server and reads its answer. Each query has a connection
// of its own, and so a port that an attacker who forges an answer has to guess.
func (d *Discovery) once(
	ctx context.Context, network string, server netip.AddrPort, q dnsmessage.Question, extended bool,
) (answer reply, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.config.QueryTimeout)
	defer cancel()
	id, err := newID()
	if err != nil {
		return reply{}, err
	}
	query, err := pack(id, q, extended)
	if err != nil {
		return reply{}, err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, server.String())
	if err != nil {
		return reply{}, err
	}
	// An error of closing says nothing about the answer.
	defer func() { _ = conn.Close() }()
	// When the context ends, so does a read that is under way.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var message []byte
	if network == "udp" {
		message, err = overUDP(conn, query, id, q)
	} else {
		message, err = overTCP(conn, query, id, q)
	}
	if err != nil {
		return reply{}, fmt.Errorf("%s: %w", network, err)
	}
	return read(message)
}

// newID draws the id of a query, which an attacker who forges an answer has to guess.
func newID() (uint16, error) {
	var id [2]byte
	if _, err := rand.Read(id[:]); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint16(id[:]), nil
}

// overUDP waits for the answer and passes over other datagrams, up to maxStrangers.
func overUDP(conn net.Conn, query []byte, id uint16, q dnsmessage.Question) ([]byte, error) {
	if _, err := conn.Write(query); err != nil {
		return nil, err
	}
	buffer := make([]byte, maxDatagramBytes)
	for strangers := range maxStrangers {
		n, err := conn.Read(buffer)
		if err != nil && strangers > 0 {
			return nil, fmt.Errorf("%w: %w", errStrangers, err) // The answer may have been crowded out.
		}
		if err != nil {
			return nil, err
		}
		if answers(buffer[:n], id, q) {
			return buffer[:n], nil
		}
	}
	return nil, errStrangers
}

func overTCP(conn net.Conn, query []byte, id uint16, q dnsmessage.Question) ([]byte, error) {
	framed := binary.BigEndian.AppendUint16(nil, uint16(len(query)))
	if _, err := conn.Write(append(framed, query...)); err != nil {
		return nil, err
	}
	var length [lengthBytes]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	message := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, message); err != nil {
		return nil, err
	}
	if !answers(message, id, q) {
		return nil, errors.New("it does not answer the question")
	}
	return message, nil
}

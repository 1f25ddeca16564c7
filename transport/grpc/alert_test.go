// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/transport"
)

// gone is a connection whose other end has sent an alert and closed it.
type gone struct{ net.Conn }

func (gone) Write([]byte) (int, error) {
	return 0, &net.OpError{Op: "write", Err: syscall.EPIPE}
}

func (gone) Read([]byte) (int, error) {
	return 0, &net.OpError{Op: "remote error", Err: errors.New("tls: revoked certificate")}
}

func (gone) SetReadDeadline(time.Time) error { return nil }

// A peer that refuses sends an alert and closes. The alert is noticed also when a
// write meets the closed connection first, since the write reads the alert before it
// fails.
func TestAnAlertIsReadBeforeAWriteFails(t *testing.T) {
	var a attempt
	conn := &alertConn{Conn: gone{}, audit: func(err error) { a.refused = classify(err) }}
	_, err := conn.Write([]byte("preface"))
	require.ErrorIs(t, err, syscall.EPIPE)
	refused, ok := errors.AsType[*transport.RefusedError](a.err(err))
	require.True(t, ok, "%v", a.err(err))
	require.Equal(t, transport.ReasonCertificate, refused.Reason)
}

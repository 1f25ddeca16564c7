// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/transport"
)

// padded is an encoded message followed by so many bytes of an unknown field.
func padded(t *testing.T, message any, size int) []byte {
	t.Helper()
	b := protowire.AppendTag(encoded(t, message), 500, protowire.BytesType)
	return protowire.AppendBytes(b, make([]byte, size))
}

// A message of a stranger above 64 KiB is dropped before it is decoded, with a line that
// names the sender; it is counted, and changes nothing else. A smaller one is taken.
//
// covers B7, I36.
func TestAStrangerMaySayLittle(t *testing.T) {
	log := new(lines)
	n, err := membership.Start(t.Context(), overGRPC(t), membership.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	require.NoError(t, err)
	defer func() { _ = n.Close() }()
	require.NoError(t, n.AwaitUp(t.Context()))
	before := n.View().State
	greeted := make(chan transport.PeerUp, 8)
	n.Notices(func(notice transport.Notice) {
		if up, ok := notice.(transport.PeerUp); ok {
			greeted <- up
		}
	})
	s := newStranger(t, func() []byte { return nil })
	stream := s.open(n.Self())
	s.say(stream, 1, padded(t, protocol.InitJoin{Attempt: 1}, 64<<10))
	s.say(stream, 2, padded(t, protocol.InitJoin{Attempt: 2}, 63<<10))
	patience.Eventually(t, func() bool { return n.Stats().Transport.Received == 2 }, "both are received")
	require.Equal(t, uint64(1), n.Stats().Oversize)
	require.Equal(t, uint64(1), n.Stats().Undecodable)
	require.Contains(t, log.String(), "no member here")
	require.Contains(t, log.String(), s.ID.String())
	require.True(t, before.Equal(n.View().State))
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package multicast

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var sender = netip.MustParseAddr("192.0.2.7")

// FuzzDatagram reads any datagram: a query or an answer that is accepted is valid and bounded,
// and reads the same after it was written again.
func FuzzDatagram(f *testing.F) {
	f.Add(packQuery(nonce{1}, "bank"))
	f.Add(packAnswer(nonce{2}, []string{":7946", "node-1.example:7946", "[fd00::1]:7946"}))
	f.Add(packQuery(nonce{3}, ""))
	f.Add(packAnswer(nonce{}, nil))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, packet []byte) {
		if n, service, err := readQuery(packet); err == nil {
			require.NotEmpty(t, service)
			require.LessOrEqual(t, len(service), maxServiceBytes)
			again, same, err := readQuery(packQuery(n, service))
			require.NoError(t, err)
			require.Equal(t, n, again)
			require.Equal(t, service, same)
			require.Len(t, packet, packetBytes, "no answer is larger")
		}
		n, list, err := readAnswer(packet, sender)
		if err != nil {
			require.ErrorIs(t, err, errPacket)
			return
		}
		require.LessOrEqual(t, len(list), maxAnnounce)
		announced := make([]string, len(list))
		for i, target := range list {
			require.NoError(t, target.Validate())
			require.NotZero(t, target.Port)
			announced[i] = target.String()
		}
		if answerBytes(announced) > packetBytes {
			return // The answer left out a host, and is too long when the host is written.
		}
		again, same, err := readAnswer(packAnswer(n, announced), sender)
		require.NoError(t, err)
		require.Equal(t, n, again)
		require.Equal(t, list, same)
	})
}

func TestSizesAreThoseOfTheProtocol(t *testing.T) {
	announced := []string{strings.Repeat("a", 60) + ":1", ":1"}
	require.Len(t, packAnswer(nonce{}, announced), answerBytes(announced))
	require.Equal(t, "QUM1\x01\x01\x02\x03\x04\x05\x06\x07\x08\x04bank\x00",
		string(packQuery(nonce{1, 2, 3, 4, 5, 6, 7, 8}, "bank")[:19]))
	require.Equal(t, "QUM1\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01\x05:7946", string(packAnswer(nonce{}, []string{":7946"})))
}

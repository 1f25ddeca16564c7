// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience/frugal"
	"github.com/quorate/quorate/sharding"
)

// What others deliver costs no more than it has bytes, times a small number. A frame has 1000 messages at most.
func TestDecodersAreFrugal(t *testing.T) {
	c := codec[*sharding.Bytes]{sharding.Raw{}}
	frames, err := c.appendFrame(nil, &Frame[*sharding.Bytes]{session: Session{1}, items: []item[*sharding.Bytes]{{number: 1, encoded: []byte("m")}}})
	require.NoError(t, err)
	ack, err := c.Append(nil, &Ack{Session{1}, 9, 3})
	require.NoError(t, err)
	frugal.Require(t, func(b []byte) { _ = c.Decode(b, new(Ack)) }, ack)
	frugal.Require(t, func(b []byte) { _ = c.Decode(b, new(Frame[*sharding.Bytes])) }, frames)
}

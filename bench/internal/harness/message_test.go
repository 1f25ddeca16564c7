// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCodecKeepsMessages(t *testing.T) {
	in := &Message{Sender: 3, Seq: 1 << 40, Ask: true, Payload: []byte("payload")}
	b, err := Codec{}.Append(nil, in)
	require.NoError(t, err)
	require.Len(t, b, HeaderBytes+len(in.Payload))
	var out Message
	require.NoError(t, Codec{}.Decode(b, &out))
	b[HeaderBytes] = 'X'
	require.Equal(t, *in, out)
	require.Error(t, Codec{}.Decode(b[:HeaderBytes-1], &out))
	require.Error(t, Codec{}.Check("text"))
}

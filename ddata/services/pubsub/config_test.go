// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/services/internal/clustertest"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/transport"
)

// A bound below zero is refused, and one for which no frame has room.
func TestConfig(t *testing.T) {
	frames := transport.Default()
	require.NoError(t, pubsub.Default().Validate())
	require.NoError(t, pubsub.Default().ValidateBeside(frames))
	require.EqualError(t, pubsub.Config{MaxMessageBytes: -1}.Validate(), "max-message-bytes: -1 is not at least 0")
	largest := frames.MaxMessageBytes() - 4096
	require.NoError(t, pubsub.Config{MaxMessageBytes: largest}.ValidateBeside(frames))
	require.ErrorContains(t, pubsub.Config{MaxMessageBytes: largest + 1}.ValidateBeside(frames), "max-message-bytes: ")
}

// Messages are as large as frames are, or as the configuration says, and no larger.
func TestMessagesAreAsLargeAsConfigured(t *testing.T) {
	frames := transport.Default()
	frames.MaxFrameBytes = 1 << 20
	for _, c := range []struct {
		config  pubsub.Config
		largest int
	}{{pubsub.Default(), frames.MaxMessageBytes() - 4096}, {pubsub.Config{MaxMessageBytes: 100}, 100}} {
		clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
			w.Start(1)
			p, err := pubsub.New(w.Nodes[0], pubsub.WithConfig(c.config, frames))
			require.NoError(t, err)
			topic, err := pubsub.NewTopic(p, "news", pubsub.Bytes{})
			require.NoError(t, err)
			require.NoError(t, topic.Publish(t.Context(), make([]byte, c.largest)))
			require.ErrorIs(t, topic.Publish(t.Context(), make([]byte, c.largest+1)), pubsub.ErrTooLarge)
		})
	}
}

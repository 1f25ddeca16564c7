// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Between two events, and after the line feed that ends one, a watch may be silent for hours. The
// rest of an event must come within the limit, also when its beginning came with the event before.
func TestOnlyAnEventThatHasBegunMustEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = time.Second
		const whole = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}`
		body, server := io.Pipe()
		stream := newEvents(body, limit, func() { _ = server.CloseWithError(errHalf) })
		go func() { // Ends with the last part: the stream reads all of them.
			for _, part := range []struct {
				after time.Duration
				text  string
			}{
				{time.Hour, whole},
				{time.Hour, "\n"},
				{time.Hour, whole[:20]},
				{limit - 1, whole[20:] + "\n"},
				{time.Hour, whole + "\n" + whole[:20]},
			} {
				<-time.After(part.after)
				_, _ = io.WriteString(server, part.text)
			}
		}()
		for range 3 {
			got, err := stream.next()
			require.NoError(t, err)
			require.Equal(t, "BOOKMARK", got.Type)
		}
		began := time.Now()
		_, err := stream.next()
		require.ErrorIs(t, err, errBrokenOff)
		require.ErrorIs(t, err, errHalf)
		require.Equal(t, limit, time.Since(began))
	})
}

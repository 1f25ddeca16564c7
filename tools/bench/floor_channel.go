// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"sync"
	"sync/atomic"
)

// channelDepth is how many messages wait in a channel of the floor: enough
// that neither side waits for each single one.
const channelDepth = 1024

// measureChannel is the floor of everything local: each sender hands its
// messages over a channel to a goroutine that checks them.
func measureChannel(ctx context.Context, s spec, _ *link) (outcome, error) {
	var found tally
	payload := make([]byte, s.Size-headerBytes)
	channels := make([]chan *message, s.Senders)
	var receivers sync.WaitGroup
	for i := range channels {
		channels[i] = make(chan *message, channelDepth)
		r := found.receiver(s.Senders, s.Size)
		// Owned by this function: ends when its channel is closed below.
		receivers.Go(func() {
			for m := range channels[i] {
				r.take(m.sender, m.seq, headerBytes+len(m.payload))
			}
		})
	}
	defer receivers.Wait()
	out, err := flood{
		senders: s.Senders, time: s.Time, mark: newStopwatch(&found, noCPU).mark,
		send: func(_ context.Context, sender uint32, stop *atomic.Bool) (n uint64, err error) {
			for !stop.Load() {
				n++
				channels[sender] <- &message{sender: sender, seq: n, payload: payload}
			}
			return n, nil
		},
	}.run(ctx)
	for _, c := range channels {
		close(c)
	}
	return out, err
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package floor

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/measure"
	"github.com/quorate/quorate/bench/internal/message"
	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/bench/internal/sequence"
)

// channelDepth is how many messages a channel of the floor holds: enough that neither
// side waits for every single one.
const channelDepth = 1024

// measureChannel measures the floor of everything local: each sender passes its messages
// over a channel to a goroutine that checks them.
func measureChannel(ctx context.Context, s process.Spec, _ *process.Link) (figure.Outcome, error) {
	var found sequence.Tally
	payload := make([]byte, s.Size-message.HeaderBytes)
	channels := make([]chan *message.Message, s.Senders)
	var receivers sync.WaitGroup
	for i := range channels {
		channels[i] = make(chan *message.Message, channelDepth)
		r := found.Receiver(s.Senders, s.Size)
		// Owned by this function: ends when its channel is closed below.
		receivers.Go(func() {
			for m := range channels[i] {
				r.Take(m.Sender, m.Seq, message.HeaderBytes+len(m.Payload))
			}
		})
	}
	defer receivers.Wait()
	out, err := measure.Flood{
		Senders: s.Senders, Time: s.Time, Mark: measure.NewStopwatch(&found, measure.NoCPU).Mark,
		Send: func(_ context.Context, sender uint32, stop *atomic.Bool) (n uint64, err error) {
			for !stop.Load() {
				n++
				channels[sender] <- &message.Message{Sender: sender, Seq: n, Payload: payload}
			}
			return n, nil
		},
	}.Run(ctx)
	for _, c := range channels {
		close(c)
	}
	return out, err
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/internal/wire"
)

// slow is a component that counts what was decoded for it, and takes each message only
// when it is let.
type slow struct {
	decoded, taken atomic.Int32
	let            chan struct{}
}

func (s *slow) Append([]byte, any) ([]byte, error) { return nil, errors.New("it sends nothing") }

func (s *slow) Decode(frame []byte) (any, error) {
	s.decoded.Add(1)
	return len(frame), nil
}

func (s *slow) Step(_ machine.Now, in machine.Input, _ *machine.Outbox) {
	if _, ok := in.(machine.Received); ok {
		<-s.let
		s.taken.Add(1)
	}
}

// However many peers send large messages at once, two are held decoded: the next one is
// decoded when the machine has taken one. Small ones do not wait for them.
// covers I36.
func TestFewLargeMessagesAreHeldDecoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{let: make(chan struct{})}
		driver := machine.NewDriver(machine.Ports{Clock: machine.NewSystemClock()}, 0)
		handle, err := driver.Attach(machine.Component{Name: ComponentName, Service: protocol.Service, Machine: s, Codec: s})
		require.NoError(t, err)
		driver.Start()
		view := View{State: gossip.New(gossip.ClusterID{})}
		in := &admission{ctx: t.Context(), view: func() View { return view }, large: make(chan struct{}, largeAtATime)}
		in.sent(visitor(1), protocol.JoinRequest{})
		welcome, err := wire.Codec{}.Append(nil, protocol.Welcome{Attempt: 1, State: gossip.New(gossip.ClusterID{Born: 1, Nonce: 1})})
		require.NoError(t, err)
		large := protowire.AppendBytes(protowire.AppendTag(welcome, 500, protowire.BytesType), make([]byte, wire.MaxStrangerSize))

		const senders, most = 16, 2
		for range senders {
			go func() { _ = in.receive(handle, visitor(1), large) }()
		}
		synctest.Wait()
		require.EqualValues(t, most, s.decoded.Load())
		require.NoError(t, in.receive(handle, visitor(1), welcome))
		require.EqualValues(t, most+1, s.decoded.Load(), "a small one is decoded at once")
		for range senders + 1 {
			s.let <- struct{}{}
			synctest.Wait()
			require.LessOrEqual(t, s.decoded.Load()-s.taken.Load(), int32(most+1))
		}
		require.EqualValues(t, senders+1, s.taken.Load(), "none is lost")
		require.NoError(t, driver.Close())
	})
}

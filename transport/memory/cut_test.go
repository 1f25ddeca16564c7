// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/memory"
	"github.com/quorate/quorate/transport/transporttest"
)

// Sessions over a network that is cut, in virtual time: cuts that are survived and losses
// that are told, slow handlers, sessions that one end has forgotten, acknowledgements that
// are stuck; then lanes to an address, blocked nodes, lanes without use, and how often a
// node dials.

// bubble runs a test in virtual time, in a world of its own.
func bubble(t *testing.T, f func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, &world{memory.NewNetwork(), 0}) })
}

// pass advances virtual time by d and waits for everything that happens meanwhile.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func pair(t *testing.T, w *world, cfg transport.Config) (a, b *transporttest.Node) {
	t.Helper()
	a = transporttest.Start(t, w, transporttest.Spec{Config: cfg}, nil)
	b = transporttest.Start(t, w, transporttest.Spec{UID: 2, Config: cfg}, nil)
	return a, b
}

// covers F11, and the rule that a silent connection is dialled anew.
func TestACutIsSurvivedByTheSession(t *testing.T) {
	cuts := map[string]func(*world, gossip.Address, gossip.Address){
		"both ways":              func(w *world, a, b gossip.Address) { w.Cut(a, b) },
		"messages alone":         func(w *world, a, b gossip.Address) { w.CutOneWay(a, b) },
		"acknowledgements alone": func(w *world, a, b gossip.Address) { w.CutOneWay(b, a) },
	}
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				t.Helper()
				cfg := transport.Default()
				a, b := pair(t, w, cfg)
				lane := a.Lane(b.Self(), machine.LaneControl)
				for i := range 10 {
					transporttest.Send(t, lane, i)
				}
				b.UntilReceived(t, 10)
				pass(2 * cfg.MaxSilence) // The watchdog of the connection rests: what is sent next has it look.
				cut(w, a.Self().Address, b.Self().Address)
				for i := 10; i < 20; i++ {
					transporttest.Send(t, lane, i)
				}
				pass(cfg.GiveUpAfter - 10*time.Second)
				require.Equal(t, uint64(1), a.Counters().Breaks)
				w.HealAll()
				healed := time.Now()
				b.UntilReceived(t, 20)
				require.LessOrEqual(t, time.Since(healed), cfg.RedialAfter)
				transporttest.Send(t, lane, 20)
				b.UntilReceived(t, 21)
				b.RequireSequence(t, a.Self(), 21)
				require.Zero(t, a.Counters().Lost)
			})
		})
	}
}

// Of a link that is cut both ways, one direction is healed: it carries, and the other one
// does not.
func TestOneDirectionHeals(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		t.Helper()
		a, b := pair(t, w, transport.Default())
		there, back := a.Lane(b.Self(), machine.LaneControl), b.Lane(a.Self(), machine.LaneControl)
		transporttest.Send(t, there, 0)
		transporttest.Send(t, back, 0)
		b.UntilReceived(t, 1)
		a.UntilReceived(t, 1)
		w.Cut(a.Self().Address, b.Self().Address)
		transporttest.Send(t, there, 1)
		transporttest.Send(t, back, 1)
		w.HealOneWay(a.Self().Address, b.Self().Address)
		b.UntilReceived(t, 2)
		pass(time.Second)
		require.EqualValues(t, 1, a.Counters().Received)
		w.HealOneWay(b.Self().Address, a.Self().Address)
		a.UntilReceived(t, 2)
	})
}

func TestLossesAreToldWhenAPeerIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		t.Helper()
		cfg := transport.Default()
		a, b := pair(t, w, cfg)
		lane := a.Lane(b.Self(), machine.LaneControl)
		transporttest.Send(t, lane, 0)
		b.UntilReceived(t, 1)
		pass(10 * time.Millisecond) // The receipt is there.
		w.Cut(a.Self().Address, b.Self().Address)
		for i := range 5 {
			transporttest.Send(t, lane, i)
		}
		pass(cfg.GiveUpAfter + cfg.HandshakeTimeout + cfg.MaxSilence)
		down := transporttest.UntilNotice(t, a, func(transport.PeerDown) bool { return true })
		require.ErrorIs(t, down.Err, transport.ErrUnreachable)
		require.Equal(t, 5, down.Lost)
		w.Heal(a.Self().Address, b.Self().Address)
		synctest.Wait()
		// What was in the network may still arrive, as over TCP, before the
		// next session begins; the outcome was unknown, not negative.
		late := b.Counters().Received
		require.LessOrEqual(t, late, uint64(1+5))
		transporttest.Send(t, lane, 5)
		b.UntilReceived(t, int(late)+1)
		pass(time.Hour)
		require.Equal(t, late+1, b.Counters().Received)
	})
}

// A handler may take its time: a peer whose handler waits is not silent, and its connection
// stays.
func TestABlockedHandlerIsNotASilentPeer(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		t.Helper()
		cfg := transport.Default()
		hold := make(chan struct{})
		a := transporttest.Start(t, w, transporttest.Spec{Config: cfg}, nil)
		b := transporttest.Start(t, w, transporttest.Spec{UID: 2, Config: cfg}, hold)
		lane := a.Lane(b.Self(), machine.LaneMessage)
		for i := range 100 {
			transporttest.Send(t, lane, i)
		}
		pass(10 * cfg.GiveUpAfter)
		require.Zero(t, a.Counters().Breaks)
		close(hold)
		b.UntilReceived(t, 100)
		b.RequireSequence(t, a.Self(), 100)
	})
}

// A peer that has forgotten a session handles no frame of the session twice: messages that
// may have been handled are reported as lost instead.
func TestAForgottenSessionIsNotResumed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		t.Helper()
		patient, forgetful := transport.Default(), transport.Default()
		patient.GiveUpAfter = time.Hour
		forgetful.GiveUpAfter = forgetful.MaxSilence
		a := transporttest.Start(t, w, transporttest.Spec{Config: patient}, nil)
		b := transporttest.Start(t, w, transporttest.Spec{UID: 2, Config: forgetful}, nil)
		lane := a.Lane(b.Self(), machine.LaneControl)
		transporttest.Send(t, lane, 0)
		b.UntilReceived(t, 1)
		pass(10 * time.Millisecond) // The receipt is there.
		w.CutOneWay(b.Self().Address, a.Self().Address)
		transporttest.Send(t, lane, 1) // The message is handled, but its acknowledgement is lost.
		b.UntilReceived(t, 2)
		pass(patient.MaxSilence * 2)
		transporttest.Send(t, lane, 2) // The old session never writes this message.
		pass(time.Minute)
		c := transporttest.Start(t, w, transporttest.Spec{UID: 3}, nil)
		transporttest.Send(t, c.Lane(b.Self(), machine.LaneControl), 0)
		b.UntilReceived(t, 3)
		w.HealAll()
		b.UntilReceived(t, 4)
		b.RequireSequence(t, a.Self(), 3)
		down := transporttest.UntilNotice(t, a, func(transport.PeerDown) bool { return true })
		require.ErrorIs(t, down.Err, transport.ErrIncarnation)
		require.Equal(t, 1, down.Lost)
	})
}

// An endpoint ends although its acknowledgements are stuck, and the peers that should
// receive them do not notice that it ends.
func TestAnEndpointEndsWhoseAcknowledgementsAreStuck(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		t.Helper()
		cfg := transport.Default()
		a, b := pair(t, w, cfg)
		lane := a.Lane(b.Self(), machine.LaneControl)
		transporttest.Send(t, lane, 0)
		b.UntilReceived(t, 1)
		w.CutOneWay(b.Self().Address, a.Self().Address)
		const acknowledged = 40 // More acknowledgements than one direction holds.
		for i := range acknowledged {
			transporttest.Send(t, lane, 1+i)
			pass(10 * time.Millisecond)
		}
		b.UntilReceived(t, 1+acknowledged)
		began := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- b.Close() }() // Owner: the test. Ends with the endpoint. Waited for below.
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(time.Minute):
			w.HealAll() // So that the bubble can end.
			t.Fatal("it does not end")
		}
		require.LessOrEqual(t, time.Since(began), cfg.Linger+cfg.MaxSilence)
	})
}

// The lane to an address hands its messages over to the lane to the node at the address.
func TestAnAddressJoinsTheSessionOfItsNode(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		t.Helper()
		a, b := pair(t, w, transport.Default())
		w.Cut(a.Self().Address, b.Self().Address)
		anyone := a.Lane(gossip.NodeID{Address: b.Self().Address}, machine.LaneControl)
		named := a.Lane(b.Self(), machine.LaneControl)
		for i := range 10 {
			transporttest.Send(t, named, i)
			transporttest.Send(t, anyone, 100+i)
		}
		pass(time.Second)
		w.HealAll()
		b.UntilReceived(t, 20)
		require.Equal(t, uint64(1), b.Counters().Accepts)
		require.Equal(t, uint64(20), b.Counters().Received)
	})
}

func TestABlockedNodeIsNotReachedByItsAddress(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		t.Helper()
		a, b := pair(t, w, transport.Default())
		a.Block(b.Self(), "removed")
		anyone := a.Lane(gossip.NodeID{Address: b.Self().Address}, machine.LaneControl)
		require.NoError(t, anyone.Append(transporttest.Service, transporttest.Number(0)))
		down := transporttest.UntilNotice(t, a, func(transport.PeerDown) bool { return true })
		require.Equal(t, transport.ReasonBlocked, transporttest.Refusal(t, down.Err).Reason)
		require.Equal(t, 1, down.Lost)
		require.Equal(t, transport.ReasonBlocked, transporttest.Refusal(t, anyone.Append(transporttest.Service, transporttest.Number(0))).Reason)
		require.Zero(t, b.Counters().Received)
	})
}

// Heartbeats keep a control lane open. A lane without use closes after a while, which is no
// break, and opens again when it is needed. covers F26, I24.
func TestAControlLaneIsThereAfterDaysWithAndWithoutUse(t *testing.T) {
	for name, every := range map[string]time.Duration{"used": time.Minute, "idle": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				t.Helper()
				a, b := pair(t, w, transport.Default())
				lane := a.Lane(b.Self(), machine.LaneControl)
				connections := uint64(0)
				for i := range int(48 * time.Hour / every) {
					transporttest.Send(t, lane, i)
					pass(every)
					b.UntilReceived(t, i+1)
					if i == 0 || every > transport.Default().IdleAfter {
						connections++
					}
				}
				require.Equal(t, connections, b.Counters().Accepts)
				require.Zero(t, a.Counters().Breaks+a.Counters().Lost)
			})
		})
	}
}

// A node that begins to listen a moment late, like nodes that start together, is
// reached at once; a node that stays away is dialled once each RedialAfter.
func TestTheFirstAttemptsToConnectFollowQuickly(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		t.Helper()
		cfg := transport.Default()
		a, b := pair(t, w, cfg)
		w.Cut(a.Self().Address, b.Self().Address)
		transporttest.Send(t, a.Lane(b.Self(), machine.LaneControl), 0)
		pass(100 * time.Millisecond)
		w.HealAll()
		began := time.Now()
		b.UntilReceived(t, 1)
		require.Less(t, time.Since(began), cfg.RedialAfter/4)
	})
}

// A peer counts as away since its connection broke, not since it last sent something.
func TestABreakAfterALongIdleTimeIsSurvived(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		t.Helper()
		cfg := transport.Default()
		a, b := pair(t, w, cfg)
		lane := a.Lane(b.Self(), machine.LaneControl)
		transporttest.Send(t, lane, 0)
		b.UntilReceived(t, 1)
		pass(time.Hour)
		w.Cut(a.Self().Address, b.Self().Address)
		w.Break(a.Self().Address, b.Self().Address)
		transporttest.Send(t, lane, 1)
		pass(cfg.GiveUpAfter / 2)
		w.HealAll()
		b.UntilReceived(t, 2)
		b.RequireSequence(t, a.Self(), 2)
		require.Zero(t, a.Counters().Lost)
	})
}

// A lane whose only message was refused dials nothing and leaves no goroutine.
func TestALaneWithoutAMessageDoesNotDial(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		t.Helper()
		cfg := transport.Default()
		a, b := pair(t, w, cfg)
		lane := a.Lane(b.Self(), machine.LaneControl)
		require.NoError(t, lane.Room(t.Context()))
		large := func(b []byte) []byte { return append(b, make([]byte, cfg.MaxMessageBytes()+1)...) }
		require.ErrorIs(t, lane.Append(transporttest.Service, large), transport.ErrTooLarge)
		pass(2 * cfg.IdleAfter)
		require.Zero(t, b.Counters().Accepts)
		transporttest.Send(t, lane, 0)
		b.UntilReceived(t, 1)
		require.Equal(t, uint64(1), b.Counters().Accepts)
	})
}

func TestAnAddressIsTakenOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		t.Helper()
		a := transporttest.Start(t, w, transporttest.Spec{}, nil)
		other := w.New(t, transporttest.Spec{
			Address: a.Self().Address, UID: 5, Cluster: "bank",
			Protocol: gossip.ProtocolRange{Min: 1, Max: 1}, Config: transport.Default(), Notices: func(transport.Notice) {},
		})
		require.ErrorContains(t, other.Start(t.Context()), a.Self().Address.String())
		require.NoError(t, other.Close())
	})
}

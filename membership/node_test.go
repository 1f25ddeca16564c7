// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/memory"
)

// covers F1, I9: nodes that start together form one cluster.
func TestNodesFormOneCluster(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		nodes := p.cluster(5)
		<-time.After(2 * time.Second) // A round of heartbeats proves the standing.
		first := nodes[0].View()
		for _, n := range nodes {
			require.NoError(t, n.AwaitUp(t.Context()))
			require.True(t, n.Standing().Held(), "%s", n.Self())
			require.Equal(t, first.State.Cluster(), n.State().Cluster())
			require.NotEmpty(t, n.Decisions().Of("join"))
		}
		require.Equal(t, nodes[0].Self(), first.Leader)
	})
}

// A role list in any order, with doubles, makes a member that the others take.
func TestRolesMayComeInAnyOrder(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		a := p.start(config(1))
		cfg := config(2)
		cfg.Node.Roles, cfg.Node.Zone = []string{"web", "backend", "web"}, "b"
		b := p.start(cfg)
		p.awaitUp(a, b)
		require.True(t, b.HasRole("backend"))
		require.False(t, b.HasRole("db"))
		require.Equal(t, []string{"backend", "web"}, a.State().Member(b.Self()).Roles)
		require.Equal(t, "b", a.State().Member(b.Self()).Zone)
	})
}

// covers F5: a node that leaves is removed everywhere, has handed its work
// over, and ends without an error.
func TestANodeLeavesInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		nodes := p.cluster(3)
		sub := nodes[0].Subscribe()
		defer sub.Close()
		require.NoError(t, nodes[2].Leave(t.Context()))
		require.NoError(t, nodes[2].Err())
		require.False(t, nodes[2].Standing().Held())
		p.awaitUp(nodes[:2]...)
		for {
			e, err := sub.Next(t.Context())
			require.NoError(t, err)
			if f, ok := e.(membership.Fenced); ok {
				require.Equal(t, membership.Fenced{Node: nodes[2].Self(), Graceful: true}, f)
				break
			}
		}
		require.NoError(t, nodes[2].Close(), "closing after leaving is in order")
		require.NoError(t, nodes[2].Leave(t.Context()), "so is leaving again")
		require.ErrorIs(t, nodes[2].AwaitUp(t.Context()), membership.ErrClosed, "a node that left never comes up")
		_, err := nodes[2].Attach(membership.Attachment{Component: machine.Component{Name: "late"}})
		require.ErrorIs(t, err, membership.ErrClosed)
	})
}

// Another member can be asked to leave, and an address where none lives is an
// error.
func TestAMemberIsAskedToLeave(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		nodes := p.cluster(3)
		require.ErrorIs(t, nodes[0].LeaveMember(t.Context(), at(9)), membership.ErrUnknownMember)
		require.ErrorContains(t, nodes[0].LeaveMember(t.Context(), "nowhere"), "nowhere")
		require.NoError(t, nodes[0].LeaveMember(t.Context(), at(3)))
		require.NoError(t, p.ended(nodes[2]))
		p.awaitUp(nodes[:2]...)
	})
}

// covers F18: a member that is declared down ends itself and says so.
func TestANodeThatIsDownedEndsWithErrDown(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		nodes := p.cluster(3)
		require.ErrorIs(t, nodes[0].Down(t.Context(), at(9)), membership.ErrUnknownMember)
		require.NoError(t, nodes[0].Down(t.Context(), at(3)))
		require.ErrorIs(t, p.ended(nodes[2]), membership.ErrDown)
		require.False(t, nodes[2].Standing().Held())
		require.ErrorIs(t, nodes[2].AwaitUp(t.Context()), membership.ErrDown)
		err := nodes[2].Down(t.Context(), at(1))
		require.ErrorIs(t, err, membership.ErrClosed)
		require.ErrorIs(t, err, membership.ErrDown, "the reason is in every error after the end")
		require.ErrorIs(t, nodes[2].Leave(t.Context()), membership.ErrDown)
		p.awaitUp(nodes[:2]...)
	})
}

// covers F7, I11: a process that crashed and starts again at its address is a
// new member; the old one is removed.
func TestARestartAtTheSameAddressIsANewMember(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		nodes := p.cluster(3)
		old := nodes[2].Self()
		require.NoError(t, nodes[2].Close())
		require.ErrorIs(t, nodes[2].Err(), membership.ErrClosed)
		again := p.start(config(3))
		require.NotEqual(t, old, again.Self())
		p.awaitUp(nodes[0], nodes[1], again)
		require.Nil(t, nodes[0].State().Member(old))
	})
}

// covers F20, F24, I14: the smaller side of a partition loses its standing by
// its own clock before the larger side takes over, and ends; the larger goes on.
func TestTheSmallerSideOfAPartitionEnds(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		nodes := p.cluster(5)
		for _, small := range []int{4, 5} {
			for _, large := range []int{1, 2, 3} {
				p.network.Cut(address(small), address(large))
			}
		}
		begun := time.Now()
		p.await(nodes[0], "the others are removed", func(v membership.View) bool { return len(v.State.Members()) == 3 })
		require.Less(t, time.Since(begun), 10*time.Second, "default settings promise this")
		for _, n := range nodes[3:] {
			require.False(t, n.Standing().Held(), "%s still stands while the others went on", n.Self())
			require.ErrorIs(t, p.ended(n), membership.ErrDown)
		}
		require.NotEmpty(t, nodes[0].Decisions().Of("downing"))
	})
}

// covers F12: the cluster refuses a node with another rule, and the error names
// the key and both values.
func TestADifferentSettingIsRefusedWithKeyAndBothValues(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		p.cluster(2)
		cfg := config(3)
		cfg.Membership.Fence = 3500 * time.Millisecond
		err := p.ended(p.start(cfg))
		require.ErrorIs(t, err, membership.ErrRefused)
		require.ErrorContains(t, err, "fence")
		require.ErrorContains(t, err, "3s")
		require.ErrorContains(t, err, "3.5s")
	})
}

// covers F13: a node of another cluster is refused, ends, and both sides name both
// clusters in the log; repeated attempts are logged once.
func TestAnotherClusterNameIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		nodes := p.cluster(2)
		cfg := config(3)
		cfg.Cluster.Name = "other"
		n := p.start(cfg)
		err := p.ended(n)
		require.ErrorIs(t, err, membership.ErrRefused)
		require.ErrorContains(t, err, `"test"`)
		require.ErrorContains(t, err, `"other"`)
		require.NotZero(t, nodes[0].Stats().Transport.RefusedInbound[transport.ReasonClusterName])
		require.NotZero(t, n.Stats().Transport.RefusedOutbound[transport.ReasonClusterName])
		require.LessOrEqual(t, strings.Count(p.log.String(), "connection refused"), 4, "%s", p.log)
		p.awaitUp(nodes...)
	})
}

// covers F2: a node that nobody answers gives up when it is told to.
func TestJoiningNobodyEndsWithErrJoinFailed(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		cfg := config(3)
		cfg.Membership.ShutdownAfterUnsuccessfulJoin = 20 * time.Second
		begun := time.Now()
		require.ErrorIs(t, p.ended(p.start(cfg)), membership.ErrJoinFailed)
		require.GreaterOrEqual(t, time.Since(begun), 20*time.Second)
	})
}

// A node without seed nodes waits to be told, and forms or joins then.
func TestANodeWithoutSeedsWaitsForJoin(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		cfg := config(1)
		cfg.Membership.SeedNodes = nil
		n := p.start(cfg)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, n.AwaitUp(ctx), context.DeadlineExceeded)
		require.Nil(t, n.View().Member())
		require.ErrorContains(t, n.Join(t.Context()), "no seed node")
		require.ErrorContains(t, n.Join(t.Context(), "nowhere"), "nowhere")
		require.NoError(t, n.Join(t.Context(), at(1)))
		require.NoError(t, n.AwaitUp(t.Context()))
	})
}

// A node that is no member yet leaves by ending.
func TestLeavingBeforeBeingAMember(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		n := p.start(config(3)) // Nobody is there to join.
		require.NoError(t, n.Leave(t.Context()))
		require.NoError(t, n.Err())
	})
}

// Close may be called at any time, from anywhere, as often as one likes. The
// bubble fails when a goroutine is left.
func TestCloseAtAnyMoment(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		rnd := rand.New(rand.NewPCG(1, 1))
		for range 40 {
			a, b := p.start(config(1)), p.start(config(2))
			<-time.After(time.Duration(rnd.Int64N(int64(3 * time.Second))))
			var closing sync.WaitGroup
			for i := range 6 {
				n := []*membership.Node{a, b}[i%2]
				closing.Go(func() { _ = n.Close() })
			}
			closing.Wait()
			require.ErrorIs(t, a.Err(), membership.ErrClosed)
			require.ErrorIs(t, b.AwaitUp(t.Context()), membership.ErrClosed)
		}
	})
}

// AwaitUp and Leave end with their context, and say why it ended.
func TestWaitingEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		nodes := p.cluster(2)
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		require.ErrorIs(t, p.start(config(9)).AwaitUp(ctx), why)
		require.ErrorIs(t, nodes[1].Leave(ctx), why)
		require.ErrorIs(t, nodes[1].Down(ctx, at(1)), why)
	})
}

// strange is a downing provider that misbehaves.
type strange func(context.Context, downing.View) (downing.Decision, error)

// Class promises nothing.
func (s strange) Class() downing.Class { return downing.Class{} }

// Decide misbehaves.
func (s strange) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	return s(ctx, v)
}

// covers F31: a provider that blocks, ignores its context, panics never, or
// answers nonsense stops nothing: heartbeats, gossip and joining go on, nobody
// is downed by a wrong answer, and the side without an answer goes after
// down-own-side-after.
func TestAStrangeDowningProviderStopsNothing(t *testing.T) {
	providers := map[string]strange{
		"blocks until its context ends": func(ctx context.Context, _ downing.View) (downing.Decision, error) {
			<-ctx.Done()
			return downing.Decision{}, ctx.Err()
		},
		"fails": func(context.Context, downing.View) (downing.Decision, error) {
			return downing.Decision{}, errors.New("no idea")
		},
		"answers nonsense": func(context.Context, downing.View) (downing.Decision, error) {
			return downing.Decision{Verdict: 99, Down: []gossip.NodeID{{Address: address(77), UID: 7}}}, nil
		},
	}
	for name, provider := range providers {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, p *place) {
				nodes := p.cluster(3, membership.WithDowning(membership.Downing{Provider: provider}))
				require.NoError(t, nodes[2].Close())
				p.await(nodes[0], "node 3 is unreachable", func(v membership.View) bool { return len(v.State.Unreachable()) == 1 })
				begun := time.Now()
				<-time.After(15 * time.Second)
				require.Len(t, nodes[0].State().Members(), 3, "nobody may decide in place of the provider")
				require.Len(t, nodes[0].State().Unreachable(), 1, "heartbeats go on")
				require.False(t, nodes[0].Standing().Held(), "an undecided side hosts nothing")
				require.False(t, nodes[1].Standing().Held(), "an undecided side hosts nothing")
				require.ErrorIs(t, p.ended(nodes[0]), membership.ErrDown)
				require.ErrorIs(t, p.ended(nodes[1]), membership.ErrDown)
				require.Less(t, time.Since(begun), time.Minute, "down-own-side-after is 30 s")
			})
		})
	}
}

// A provider that ignores the end of its context costs its goroutine and
// nothing else: Close does not wait for it.
func TestAProviderThatNeverReturnsIsAbandoned(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		never := make(chan struct{})
		hangs := strange(func(context.Context, downing.View) (downing.Decision, error) {
			<-never
			return downing.Decision{}, nil
		})
		nodes := p.cluster(3, membership.WithDowning(membership.Downing{Provider: hangs}))
		require.NoError(t, nodes[2].Close())
		require.ErrorIs(t, p.ended(nodes[0]), membership.ErrDown)
		require.ErrorIs(t, p.ended(nodes[1]), membership.ErrDown)
		require.NotZero(t, nodes[0].Stats().Driver.Abandoned+nodes[1].Stats().Driver.Abandoned)
		close(never)
	})
}

// A component whose name or service is not in use is attached, one with a name or service
// in use is not, and the first keeps working.
func TestAComponentIsAttachedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		n := p.start(config(1))
		_, err := n.Attach(membership.Attachment{Component: machine.Component{Name: membership.ComponentName}})
		require.ErrorIs(t, err, machine.ErrTaken)
		_, err = n.Attach(membership.Attachment{Component: machine.Component{Name: "other", Service: 1}})
		require.ErrorIs(t, err, machine.ErrTaken)
		require.NoError(t, n.AwaitUp(t.Context()))
	})
}

// A port in use, as the transport reports it, leaves nothing behind: the bubble
// would not end. The same address is free when the first node has ended.
func TestAnAddressInUse(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		n := p.start(config(1))
		_, err := membership.Start(t.Context(), config(1), p.options()...)
		require.ErrorContains(t, err, at(1))
		require.NoError(t, n.Close())
		require.NoError(t, p.start(config(1)).AwaitUp(t.Context()))
	})
}

// The log of a cluster in good health holds one line for each thing that happens, a
// sentence, and nothing above info.
func TestTheLogOfAHealthyClusterIsQuiet(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		nodes := p.cluster(5)
		<-time.After(10 * time.Second) // That a member is up, other nodes hear and log some moments later.
		before := strings.Count(p.log.String(), "\n")
		<-time.After(time.Minute)
		require.Equal(t, before, strings.Count(p.log.String(), "\n"), "nothing happened")
		for _, node := range slices.Backward(nodes) {
			require.NoError(t, node.Leave(t.Context()))
		}
		for line := range strings.Lines(p.log.String()) {
			require.Contains(t, line, "level=INFO msg=", "%s", line)
			require.NotContains(t, line, "msg=decision", "%s", line)
		}
	})
}

// That messages to a node go over the other wire is in the log, with what may be the cause.
func TestAFallbackToGRPCIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		p.start(config(1), membership.WithTransport(func(id transport.Identity, cfg transport.Config, notices func(transport.Notice)) (transport.Transport, error) {
			notices(transport.FellBack{Peer: gossip.Address{Host: "10.0.0.7", Port: 7946}})
			return memory.New(p.network, id, cfg, memory.WithNotices(notices))
		}))
		const line = `level=INFO msg="messages go over gRPC: the node there takes nothing else, by transport.lane or as an older version"`
		require.Equal(t, 1, strings.Count(p.log.String(), line), p.log)
		require.Contains(t, p.log.String(), "peer=10.0.0.7:7946")
	})
}

// While the process has no file descriptor left the system hands no connection out, some
// hundred times in a minute: the log says it once, with what to do, and says it again
// while it goes on.
func TestAWantOfDescriptorsIsLoggedOnceInAWhile(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		var tell func(transport.Notice)
		p.start(config(1), membership.WithTransport(func(id transport.Identity, cfg transport.Config, notices func(transport.Notice)) (transport.Transport, error) {
			tell = notices
			return memory.New(p.network, id, cfg, memory.WithNotices(notices))
		}))
		for range 3 {
			tell(transport.NotAccepted{Err: syscall.EMFILE})
		}
		const line = `level=ERROR msg="no connections are accepted: give the process more file descriptors`
		require.Equal(t, 1, strings.Count(p.log.String(), line), p.log)
		require.Contains(t, p.log.String(), "too many open files")
		<-time.After(time.Minute)
		tell(transport.NotAccepted{Err: syscall.EMFILE})
		require.Equal(t, 2, strings.Count(p.log.String(), line), p.log)
	})
}

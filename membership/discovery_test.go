// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/machine/meter/metertest"
	"github.com/quorate/quorate/membership"
)

// directory is a method of discovery that a test tells what to find.
type directory struct {
	mu    sync.Mutex
	found []discovery.Target
	err   error
}

// Lookup finds what it was told.
func (d *directory) Lookup(context.Context, discovery.Query) (discovery.Targets, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return discovery.Targets{List: d.found, Reason: "the test says so"}, d.err
}

// tell changes what it finds.
func (d *directory) tell(err error, nodes ...int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found, d.err = nil, err
	for _, i := range nodes {
		d.found = append(d.found, discovery.Target{Host: address(i).Host, Port: address(i).Port})
	}
}

// set changes what it finds to these.
func (d *directory) set(found ...discovery.Target) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found, d.err = found, nil
}

// looking is the configuration of the i-th node, which looks contact points up.
func looking(i int) membership.Config {
	cfg := config(i)
	cfg.Membership.SeedNodes, cfg.Membership.Discovery.Methods = nil, []string{"directory"}
	return cfg
}

func with(d discovery.Discovery) membership.Option {
	return membership.WithDiscovery(discovery.Method{Name: "directory", Discovery: d})
}

func TestNodesThatLookEachOtherUpFormACluster(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		d := &directory{}
		d.tell(errors.New("the directory is closed"))
		reader := metertest.New()
		one := p.start(looking(1), with(d), membership.WithMeterProvider(reader.Provider()))
		two := p.start(looking(2), with(d))
		<-time.After(6 * time.Second)
		b := one.Bootstrap()
		require.Contains(t, b.Line, "the lookup failed: discovery: directory: the directory is closed")
		require.Contains(t, one.Waiting().Reason, b.Fault)
		require.Contains(t, one.Waiting().Cure, "have discovery find those that there are")
		require.Zero(t, b.LookedUp)
		d.tell(nil, 1, 2)
		p.awaitUp(one, two)
		b = one.Bootstrap()
		require.Equal(t, "nothing: this node is in a cluster", b.Line)
		require.Equal(t, []membership.ContactPoint{{Address: at(1), Answers: true}, {Address: at(2), Answers: true}}, b.Points)
		require.Empty(t, b.Fault)
		require.NotZero(t, b.LookedUp)
		require.Nil(t, one.Waiting())
		require.InDelta(t, 2, reader.Value(t, "quorate.bootstrap.contacts"), 0)
		require.ErrorContains(t, one.Join(t.Context(), at(2)), "membership.discovery.methods says how")
		require.Contains(t, p.log.String(), "0 of 2 contact points, unchanged for 0 s of 5 s; the lookup failed")
	})
}

// Two nodes with addresses of version 6, of which the lower number is the higher text, and
// which are found in another spelling, are one cluster.
func TestNodesWithIPv6AddressesFormACluster(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		d := &directory{}
		d.set(discovery.Target{Host: "fd00::9", Port: 7946}, discovery.Target{Host: "fd00::10", Port: 7946})
		var nodes []*membership.Node
		for i, address := range []string{"[fd00::9]:7946", "[fd00::10]:7946"} {
			cfg := looking(i)
			cfg.Node.Address = address
			nodes = append(nodes, p.start(cfg, with(d)))
		}
		p.awaitUp(nodes...)
		formed := func(n *membership.Node) int {
			count := 0
			for _, d := range n.Decisions().Of("join") {
				if strings.HasPrefix(d.Verdict, "formed cluster") {
					count++
				}
			}
			return count
		}
		require.Equal(t, 1, formed(nodes[0]))
		require.Zero(t, formed(nodes[1]))
	})
}

// registry is a directory that finds those who have announced themselves.
type registry struct {
	directory

	announced []string
	fault     error
}

func (r *registry) Announce(service string, self discovery.Target) error {
	if r.fault != nil {
		return r.fault
	}
	r.announced = append(r.announced, service+" "+self.String())
	r.set(append(slices.Clone(r.found), self)...)
	return nil
}

// A registry finds nodes that have announced themselves: the node does that, once, for the
// service that it looks up, where the registry is selected.
func TestNodesAnnounceThemselves(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		r, other := &registry{}, &registry{}
		passedOver := membership.WithDiscovery(discovery.Method{Name: "other", Discovery: other})
		one := p.start(looking(1), with(r), passedOver)
		shop := looking(2)
		shop.Membership.Discovery.Service = "shop"
		p.awaitUp(one, p.start(shop, with(r)))
		require.Equal(t, []string{"test " + at(1), "shop " + at(2)}, r.announced)
		require.Empty(t, other.announced, "nothing selects it")
		r.fault = errors.New("the registry is closed for ever")
		_, err := membership.Start(t.Context(), looking(3), with(r))
		require.ErrorIs(t, err, r.fault)
		require.ErrorContains(t, err, "discovery by directory")
	})
}

// What is wrong is said before anything has started.
func TestDiscoveryIsChecked(t *testing.T) {
	refuses := func(why string, change func(*membership.Config), opts ...membership.Option) {
		t.Helper()
		cfg := looking(1)
		change(&cfg)
		_, err := membership.Start(t.Context(), cfg, opts...)
		require.ErrorContains(t, err, why)
	}
	nothing := func(*membership.Config) {}
	refuses(`membership.discovery.methods: "directory" is neither built in (static) nor given by WithDiscovery`, nothing)
	refuses("is given twice", nothing, with(&directory{}), with(&directory{}))
	refuses("membership.seed-nodes: nobody asks them", func(c *membership.Config) { c.Membership.SeedNodes = []string{at(1)} }, with(&directory{}))
	refuses(`membership.discovery.methods: the method "static" finds nobody`, func(c *membership.Config) {
		c.Membership.Discovery.Methods = []string{"static"}
	})
	refuses("membership.discovery.stable-margin: -1s is not from 0s", func(c *membership.Config) {
		c.Membership.Discovery.StableMargin = -time.Second
	})
	refuses("membership.discovery.methods: \"directory\" is given twice", func(c *membership.Config) {
		c.Membership.Discovery.Methods = []string{"directory", "directory"}
	})
	refuses("a JoinDecider was given, and membership.discovery.methods names nothing", func(c *membership.Config) {
		c.Membership.Discovery.Methods = nil
	}, membership.WithJoinDecider(bootstrap.LowestAddress{}))
	refuses(`membership.discovery.join-decider: "sage" is not the name of a plugin, and the program gives no decider by WithJoinDecider`, func(c *membership.Config) {
		c.Membership.Discovery.JoinDecider = "sage"
	}, with(&directory{}))
	refuses(`membership.discovery.join-decider: nobody asks "sage"`, func(c *membership.Config) {
		c.Membership.Discovery.JoinDecider, c.Membership.Discovery.Methods = "sage", nil
	})
	for _, opt := range []membership.Option{
		membership.WithFailureDetector("", func() fd.Detector { return nil }),
		membership.WithFailureDetector("oracle", nil),
		membership.WithFailureDetector(fd.StrategyDeadline, func() fd.Detector { return nil }),
	} {
		refuses("needs a factory, and a name that is not built in", nothing, with(&directory{}), opt)
	}
	for _, opt := range []membership.Option{
		membership.WithJudge("", fd.NewDetectorJudge(nil)),
		membership.WithJudge("oracle", nil),
		membership.WithJudge(fd.StrategyDeadline, fd.NewDetectorJudge(nil)),
	} {
		refuses("a judge of the program needs a name that is not built in", nothing, with(&directory{}), opt)
	}
	refuses(`membership.failure-detector.strategy: "oracle" is neither built in (phi-accrual, deadline)`, func(c *membership.Config) {
		c.Membership.FailureDetector.Strategy = "oracle"
	}, with(&directory{}))
}

// The seed nodes are a method too, beside others.
func TestSeedNodesAreTheStaticMethod(t *testing.T) {
	bubble(t, func(_ *testing.T, p *place) {
		d := &directory{}
		var nodes []*membership.Node
		for i := 1; i <= 2; i++ {
			cfg := looking(i)
			cfg.Membership.SeedNodes = []string{at(1), at(2)}
			cfg.Membership.Discovery.Methods = []string{"directory", "static"}
			nodes = append(nodes, p.start(cfg, with(d)))
		}
		p.awaitUp(nodes...)
	})
}

// ruling decides as a test says.
type ruling func(bootstrap.Observations) (bootstrap.Decision, error)

func (s ruling) Decide(_ context.Context, o bootstrap.Observations) (bootstrap.Decision, error) {
	return s(o)
}

func TestADeciderOfTheProgramDecides(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		d := &directory{}
		d.tell(nil, 1, 2)
		open := make(chan struct{})
		decider := membership.WithJoinDecider(ruling(func(o bootstrap.Observations) (bootstrap.Decision, error) {
			select {
			case <-open:
				return bootstrap.LowestAddress{}.DecideNow(o), nil
			default:
				return bootstrap.Decision{}, errors.New("who decides is at lunch")
			}
		}))
		one, two := p.start(looking(1), with(d), decider), p.start(looking(2), with(d), decider)
		<-time.After(time.Minute)
		require.Empty(t, one.State().Members())
		require.Contains(t, one.Decisions().Of("bootstrap")[len(one.Decisions().Of("bootstrap"))-1].Reason, "who decides is at lunch")
		close(open)
		p.awaitUp(one, two)
	})
}

// hanging is a decider that answers nothing while it hangs, not even when its time has passed.
type hanging struct{ back, free chan struct{} }

func (h hanging) Decide(_ context.Context, o bootstrap.Observations) (bootstrap.Decision, error) {
	select {
	case <-h.back:
		return bootstrap.LowestAddress{}.DecideNow(o), nil
	default:
	}
	<-h.free
	return bootstrap.Decision{Action: bootstrap.Form}, nil
}

// A decider that hangs holds its node back, and is asked again: when it answers, the node
// forms a cluster.
func TestADeciderThatHangsIsAskedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		d := &directory{}
		d.tell(nil, 1)
		h := hanging{make(chan struct{}), make(chan struct{})}
		cfg := looking(1)
		cfg.Membership.Discovery.RequiredContactPoints = 1
		cfg.Membership.Discovery.JoinDecider = "sage"
		one := p.start(cfg, with(d), membership.WithJoinDecider(h))
		<-time.After(time.Minute)
		require.Empty(t, one.State().Members())
		asked := one.Decisions().Of("bootstrap")
		require.Contains(t, asked[len(asked)-1].Reason, "the decider did not answer")
		close(h.back)
		close(h.free)
		p.awaitUp(one)
	})
}

// trusting suspects nobody, so that the bounds alone decide.
type trusting struct{ heard bool }

func (p *trusting) Heartbeat(time.Time)    { p.heard = true }
func (*trusting) Available(time.Time) bool { return true }
func (p *trusting) Monitoring() bool       { return p.heard }

func TestAFailureDetectorOfTheProgramJudges(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		var made atomic.Int32 // Each node calls it on its own goroutine.
		own := membership.WithFailureDetector("trusting", func() fd.Detector {
			made.Add(1)
			return &trusting{}
		})
		var nodes []*membership.Node
		for i := 1; i <= 2; i++ {
			cfg := config(i)
			cfg.Membership.FailureDetector.Strategy = "trusting"
			nodes = append(nodes, p.start(cfg, own))
		}
		p.awaitUp(nodes...)
		require.Positive(t, made.Load())
	})
}

// sage is a judge that a test directs.
type sage struct {
	inner   *fd.DetectorJudge
	hangs   atomic.Bool
	anew    atomic.Bool
	batches atomic.Int32
}

func (s *sage) Judge(ctx context.Context, b fd.Batch) (fd.Verdicts, error) {
	s.batches.Add(1)
	if s.hangs.Load() {
		<-ctx.Done()
		return fd.Verdicts{}, ctx.Err()
	}
	if s.anew.CompareAndSwap(true, false) {
		return fd.Verdicts{}, fmt.Errorf("a new process: %w", fd.ErrOutOfStep)
	}
	return s.inner.Judge(ctx, b)
}

// A judge of the program decides, also when it begins anew; while it hangs, phi-accrual does.
func TestAJudgeOfTheProgramJudges(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		phi, err := fd.NewFactory(fd.Default())
		require.NoError(t, err)
		var nodes []*membership.Node
		var judges []*sage
		for i := 1; i <= 2; i++ {
			s := &sage{inner: fd.NewDetectorJudge(phi)}
			cfg := config(i)
			cfg.Membership.FailureDetector.Strategy = "sage"
			nodes, judges = append(nodes, p.start(cfg, membership.WithJudge("sage", s))), append(judges, s)
		}
		p.awaitUp(nodes...)
		said := func() string {
			var all []string
			for _, d := range nodes[0].Decisions().Of("reachability") {
				if d.Subject == "sage" {
					all = append(all, d.Verdict)
				}
			}
			return strings.Join(all, " ")
		}
		await := func(what string, so func() bool) {
			t.Helper()
			require.Eventually(t, so, time.Minute, 100*time.Millisecond, what)
		}
		await("it judges", func() bool { return said() == "judges" })
		judges[0].anew.Store(true)
		before := judges[0].batches.Load()
		await("it has begun anew", func() bool { return judges[0].batches.Load() > before+4 })
		require.Equal(t, "judges", said())
		judges[0].hangs.Store(true)
		await("phi-accrual takes over", func() bool { return said() == "judges away" })
		judges[0].hangs.Store(false)
		await("it judges again", func() bool { return said() == "judges away judges" })
	})
}

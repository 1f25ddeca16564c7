// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package multicast

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/discoverytest"
	"github.com/quorate/quorate/internal/patience"
)

// Most tests run in virtual time on a network in memory: first the conformance suite and how nodes
// find each other, then loss, forged datagrams and floods, then failures and the settings. In the
// end two nodes find each other over the loopback interface of the machine.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errUnplugged = errors.New("unplugged")

func settings(announce ...string) Config {
	config := Default()
	config.Service, config.Announce = "quorate", announce
	return config
}

// start returns a method on a network, which answers queries if its settings announce
// something.
func start(t testing.TB, n network, config Config) *Discovery {
	t.Helper()
	d, err := newOn(n, config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	require.NoError(t, d.Start())
	return d
}

func texts(list []discovery.Target) []string {
	var text []string
	for _, target := range list {
		text = append(text, target.String())
	}
	return text
}

func lookup(t testing.TB, d *Discovery) []string {
	t.Helper()
	found, err := d.Lookup(t.Context(), discovery.Query{Service: "quorate"})
	require.NoError(t, err)
	return texts(found.List)
}

func TestMulticastKeepsTheContract(t *testing.T) {
	discoverytest.TestSource(t, discoverytest.Source{
		Holding: func(t testing.TB, n int) discovery.Discovery {
			t.Helper()
			network := newMemoryNetwork()
			config := settings()
			if n < discovery.MaxTargets {
				config.Window = 100 * time.Millisecond
			}
			for from := 0; from < n; from += maxAnnounce {
				var announce []string
				for i := from; i < min(n, from+maxAnnounce); i++ {
					announce = append(announce, fmt.Sprintf("node-%d:7946", i))
				}
				start(t, network, settings(announce...))
			}
			return start(t, network, config)
		},
		Failing: func(t testing.TB) discovery.Discovery {
			t.Helper()
			network := newMemoryNetwork()
			d := start(t, network, settings())
			network.broken = errUnplugged
			return d
		},
		// Silence is an empty answer, after the window.
	})
}

// In virtual time a lookup takes exactly its window, and a cancelled one no time.
func TestNodesFindEachOther(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		t.Run(fmt.Sprintf("version 6: %v", v6), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := newMemoryNetwork()
				network.v6 = v6
				first := start(t, network, settings(":7946", "10.9.9.9:1", "node.example:7946"))
				start(t, network, settings(":7947"))
				other := settings(":1")
				other.Service = "shop"
				start(t, network, other)
				begun := time.Now()
				want := []string{"10.0.0.2:7946", "10.0.0.4:7947", "10.9.9.9:1", "node.example:7946"}
				if v6 {
					want = []string{"10.9.9.9:1", "[fe80::2%eth0]:7946", "[fe80::4%eth0]:7947", "node.example:7946"}
				}
				require.Equal(t, want, lookup(t, first))
				require.Equal(t, first.config.Window, time.Since(begun))
				found, err := first.Lookup(t.Context(), discovery.Query{Service: "inn"})
				require.NoError(t, err)
				require.Empty(t, found.List)
				require.Equal(t, "nobody answered to 239.255.71.82:7947 within 500ms", found.Reason)
				require.EqualValues(t, maxQueries, first.Stats().Queries)
				require.EqualValues(t, maxQueries, first.Stats().Answers)
				require.EqualValues(t, maxQueries, first.Stats().Strange, "the inn is another service")
			})
		})
	}
}

// A node that announces itself is found by others and by itself; if the settings announce
// something, that is found in its place.
func TestNodesAnnounceThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNetwork()
		announced := func(config Config, self discovery.Target) *Discovery {
			d, err := newOn(network, config)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, d.Close()) })
			require.NoError(t, d.Announce("quorate", self))
			return d
		}
		first := announced(Default(), discovery.Target{Host: "10.7.7.1", Port: 7946})
		second := announced(settings("10.8.8.1:1"), discovery.Target{Host: "10.7.7.2", Port: 7946})
		require.Equal(t, []string{"10.7.7.1:7946", "10.8.8.1:1"}, lookup(t, first))
		require.ErrorContains(t, second.Announce("quorate", discovery.Target{Host: "10.7.7.2", Port: 7946}), "started twice")
		nameless, err := newOn(network, Default())
		require.NoError(t, err)
		require.ErrorContains(t, nameless.Announce("", discovery.Target{Host: "10.7.7.3", Port: 7946}), "service: none given")
	})
}

func TestLookupEndsWithItsContextAndWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, newMemoryNetwork(), settings())
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		begun := time.Now()
		_, err := d.Lookup(ctx, discovery.Query{Service: "quorate"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Millisecond, time.Since(begun))
		var asking sync.WaitGroup
		asking.Go(func() {
			_, err := d.Lookup(t.Context(), discovery.Query{Service: "quorate"})
			if !errors.Is(err, discovery.ErrClosed) {
				t.Errorf("error is %v, want %v", err, discovery.ErrClosed)
			}
		})
		synctest.Wait()
		begun = time.Now()
		require.NoError(t, d.Close())
		asking.Wait()
		require.Zero(t, time.Since(begun))
		require.ErrorIs(t, d.Start(), discovery.ErrClosed)
	})
}

// One query is lost, and one answer: the answer to the third query, the last, arrives.
func TestLostDatagramsAreMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNetwork()
		sent := 0
		network.lose = func([]byte, netip.AddrPort, netip.AddrPort) bool {
			sent++
			return sent == 1 || sent == 3
		}
		require.Equal(t, []string{"10.0.0.2:7946"}, lookup(t, start(t, network, settings(":7946"))))
	})
}

// A node that does not hear its own answer cannot hear others either, and must not believe that
// it is alone.
func TestNetworkWithoutMulticastIsAnErrorForWhoeverAnnounces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNetwork()
		network.lose = func([]byte, netip.AddrPort, netip.AddrPort) bool { return true }
		d := start(t, network, settings(":7946"))
		_, err := d.Lookup(t.Context(), discovery.Query{Service: "quorate"})
		require.ErrorIs(t, err, errNoEcho)
		found, err := d.Lookup(t.Context(), discovery.Query{Service: "shop"})
		require.NoError(t, err)
		require.Empty(t, found.List)
	})
}

// An answer with another nonce, or that cannot be read, is passed over and counted.
func TestForgedAndMalformedAnswersAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNetwork()
		stranger, err := network.join(netip.MustParseAddrPort(Default().Group), "")
		require.NoError(t, err)
		var answering sync.WaitGroup
		answering.Go(func() {
			packet := make([]byte, packetBytes)
			for {
				size, from, err := stranger.ReadFromUDPAddrPort(packet)
				if err != nil {
					return
				}
				n, _, err := readQuery(packet[:size])
				if err != nil {
					t.Errorf("the query: %v", err)
				}
				good := packAnswer(n, []string{"6.6.6.6:1"})
				other := n
				other[0]++
				for _, forged := range [][]byte{
					packAnswer(other, []string{"6.6.6.6:1"}), good[:len(good)-1], append(good, 0),
					{},
					packet[:size],
					packAnswer(n, []string{"0.0.0.0:1"}), packAnswer(n, []string{"6.6.6.6:0"}), packAnswer(n, []string{""}),
					packAnswer(n, slices.Repeat([]string{"a:1"}, maxAnnounce+1)), make([]byte, 9000),
				} {
					if _, err := stranger.WriteToUDPAddrPort(forged, from); err != nil {
						t.Error(err)
					}
				}
			}
		})
		d := start(t, network, settings(":7946"))
		require.Equal(t, []string{"10.0.0.3:7946"}, lookup(t, d))
		require.EqualValues(t, 10*maxQueries, d.Stats().Strange)
		require.NoError(t, stranger.Close())
		answering.Wait()
	})
}

func TestFloodOfAnswersIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNetwork()
		stranger, err := network.join(netip.MustParseAddrPort(Default().Group), "")
		require.NoError(t, err)
		answer := func(_ nonce, i int) []byte { return packAnswer(nonce{}, []string{fmt.Sprintf("a%d:1", i)}) }
		var answering sync.WaitGroup
		answering.Go(func() {
			packet := make([]byte, packetBytes)
			for {
				size, from, err := stranger.ReadFromUDPAddrPort(packet)
				if err != nil {
					return
				}
				n, _, err := readQuery(packet[:size])
				if err != nil {
					t.Errorf("the query: %v", err)
				}
				for i := range maxPackets + 1 {
					if _, err := stranger.WriteToUDPAddrPort(answer(n, i), from); err != nil {
						t.Error(err)
					}
					if i%1000 == 0 {
						synctest.Wait() // The lookup empties the buffer of the socket.
					}
				}
			}
		})
		d := start(t, network, settings())
		_, err = d.Lookup(t.Context(), discovery.Query{Service: "quorate"})
		require.ErrorContains(t, err, "more than 40000 datagrams")
		require.NoError(t, stranger.Close())
		answering.Wait()
	})
}

// A flood of queries gets 200 answers a second, and is seen in the counters.
func TestAnswersOfASecondAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNetwork()
		d := start(t, network, settings(":7946"))
		s, err := network.open(t.Context(), d.group, "")
		require.NoError(t, err)
		query := packQuery(nonce{1}, "quorate")
		ask := func(times int) {
			for range times {
				_, err := s.WriteToUDPAddrPort(query, d.group)
				require.NoError(t, err)
			}
			synctest.Wait()
		}
		ask(1000)
		require.Equal(t, Stats{Queries: 1000, Answers: answersPerSecond, Refused: 800}, d.Stats())
		<-time.After(time.Second)
		ask(1)
		require.EqualValues(t, answersPerSecond+1, d.Stats().Answers)
		// A datagram that is no query for this node gets no answer at all.
		for _, strange := range [][]byte{
			query[:packetBytes-1], append(slices.Clone(query), 0),
			{},
			packQuery(nonce{}, "shop"), make([]byte, packetBytes),
			packAnswer(nonce{}, nil), append([]byte("QUM2"), query[4:]...),
		} {
			_, err := s.WriteToUDPAddrPort(strange, d.group)
			require.NoError(t, err)
		}
		synctest.Wait()
		require.Equal(t, Stats{Queries: 1001, Answers: answersPerSecond + 1, Refused: 800, Strange: 7}, d.Stats())
		require.NoError(t, s.Close())
	})
}

// While the network is down the goroutine that answers pauses, and afterwards it goes on.
func TestAnsweringGoesOnAfterReadsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNetwork()
		network.failingReads = 50
		begun := time.Now()
		d := start(t, network, settings(":7946"))
		<-time.After(51 * pauseAfterFailure)
		require.Equal(t, []string{"10.0.0.2:7946"}, lookup(t, d))
		require.EqualValues(t, 50, d.Stats().Failed)
		require.Less(t, time.Since(begun), time.Minute)
		network.mu.Lock()
		network.failingReads = 1 << 30
		network.mu.Unlock()
		_, err := d.Lookup(t.Context(), discovery.Query{Service: "quorate"})
		require.NoError(t, err, "the read that was under way")
		require.NoError(t, d.Close())
	})
}

func TestStartFailsWhereItCannotListen(t *testing.T) {
	network := newMemoryNetwork()
	d, err := newOn(network, settings(":1"))
	require.NoError(t, err)
	network.broken = errUnplugged
	require.ErrorIs(t, d.Start(), errUnplugged)
	require.ErrorContains(t, d.Start(), "started twice")
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
}

func TestServiceWithoutNameIsRefused(t *testing.T) {
	d := start(t, newMemoryNetwork(), settings())
	for _, service := range []string{"", strings.Repeat("a", maxServiceBytes+1)} {
		_, err := d.Lookup(t.Context(), discovery.Query{Service: service})
		require.ErrorContains(t, err, "not from 1 to 200")
	}
}

func TestConfigReportsEachFaultAtItsKey(t *testing.T) {
	require.NoError(t, Default().Validate())
	for _, tc := range []struct {
		key  string
		edit func(*Config)
	}{
		{"group", func(c *Config) { c.Group = "bank" }},
		{"group", func(c *Config) { c.Group = "10.0.0.1:1" }},
		{"group", func(c *Config) { c.Group = "239.255.0.1:0" }},
		{"group", func(c *Config) { c.Group = "[ff02::1%eth0]:1" }},
		{"window", func(c *Config) { c.Window = 0 }},
		{"window", func(c *Config) { c.Window = time.Minute }},
		{"service", func(c *Config) { c.Service = strings.Repeat("a", 201) }},
		{"service", func(c *Config) { c.Announce = []string{":1"} }},
		{"announce", func(c *Config) { c.Service, c.Announce = "a", slices.Repeat([]string{":1"}, 17) }},
		{"announce", func(c *Config) { c.Service, c.Announce = "a", []string{"node-1"} }},
		{"announce", func(c *Config) { c.Service, c.Announce = "a", []string{strings.Repeat("a", 300)} }},
		{"announce", func(c *Config) {
			c.Service, c.Announce = "a", slices.Repeat([]string{strings.Repeat("a.", 100) + "b:1"}, 6)
		}},
	} {
		config := Default()
		tc.edit(&config)
		faults := field.Parts(config.Validate())
		require.Len(t, faults, 1, tc.key)
		key, reason := field.Of(faults[0])
		require.Equal(t, tc.key, key)
		require.NotEmpty(t, reason)
		_, err := New(config)
		require.Error(t, err)
	}
}

// loopback returns the interface of the tests with real datagrams, which do not leave the
// machine.
func loopback(t testing.TB) string {
	t.Helper()
	interfaces, err := net.Interfaces()
	require.NoError(t, err)
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 {
			return i.Name
		}
	}
	require.Fail(t, "the machine has no loopback interface")
	return ""
}

// carries reports whether a datagram to a group arrives over an interface of this machine,
// without any of the code under test.
func carries(t testing.TB, group netip.AddrPort, name string) bool {
	t.Helper()
	outlet, err := net.InterfaceByName(name)
	require.NoError(t, err)
	in, err := net.ListenMulticastUDP("udp", outlet, net.UDPAddrFromAddrPort(group))
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	out, err := net.ListenUDP("udp", nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, out.Close()) }()
	if group.Addr().Is4() {
		require.NoError(t, ipv4.NewPacketConn(out).SetMulticastInterface(outlet))
	} else {
		require.NoError(t, ipv6.NewPacketConn(out).SetMulticastInterface(outlet))
	}
	if _, err := out.WriteToUDPAddrPort([]byte("x"), group); err != nil {
		t.Logf("%s: %v", name, err)
		return false
	}
	//quorate:realtime A datagram over this machine has arrived by then, or none ever does.
	require.NoError(t, in.SetReadDeadline(time.Now().Add(time.Second)))
	_, _, err = in.ReadFromUDPAddrPort(make([]byte, 1))
	return err == nil
}

// Over real sockets two nodes find each other. On a machine whose loopback interface carries no
// multicast the lookup is an error that says so, and no empty answer.
func TestNodesFindEachOtherOverTheLoopbackInterface(t *testing.T) {
	for _, address := range []string{"239.255.71.82", "ff02::7175:6f72"} {
		t.Run(address, func(t *testing.T) {
			patience.Watch(t)
			conn, err := net.ListenPacket("udp", "127.0.0.1:0")
			require.NoError(t, err)
			_, port, err := net.SplitHostPort(conn.LocalAddr().String())
			require.NoError(t, err)
			require.NoError(t, conn.Close())
			config := settings("node-1.example:1")
			config.Group, config.Interface = net.JoinHostPort(address, port), loopback(t)
			first := start(t, udpNetwork{}, config)
			config.Announce = []string{"node-2.example:1"}
			start(t, udpNetwork{}, config)
			found, err := first.Lookup(t.Context(), discovery.Query{Service: "quorate"})
			if !carries(t, netip.MustParseAddrPort(config.Group), config.Interface) {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{"node-1.example:1", "node-2.example:1"}, texts(found.List))
		})
	}
}

func TestInterfaceThatIsNotThereIsAnError(t *testing.T) {
	config := settings(":1")
	config.Interface = "no-such-interface"
	d, err := New(config)
	require.NoError(t, err)
	require.ErrorContains(t, d.Start(), "no-such-interface")
	_, err = d.Lookup(t.Context(), discovery.Query{Service: "quorate"})
	require.ErrorContains(t, err, "no-such-interface")
	require.NoError(t, d.Close())
}

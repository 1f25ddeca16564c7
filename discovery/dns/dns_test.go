// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	miekg "github.com/miekg/dns"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/discoverytest"
	"github.com/quorate/quorate/discovery/dns"
	"github.com/quorate/quorate/discovery/dns/dnstest"
	"github.com/quorate/quorate/internal/patience"
)

// Lookups against the server of dnstest: first the conformance suite, then addresses and
// services, then how long answers are kept, aliases, and records and names that are not valid.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// settings ask these servers alone, without a file. The servers of the tests answer at once, so that a
// query may take as long as the settings allow; tests with a silent server set a limit of their own.
func settings(servers ...*dnstest.Server) dns.Config {
	config := dns.Default()
	config.ResolvConf = ""
	config.QueryTimeout = time.Minute
	for _, server := range servers {
		config.Servers = append(config.Servers, server.Addr())
	}
	return config
}

func newDNS(t testing.TB, config dns.Config, options ...dns.Option) *dns.Discovery {
	t.Helper()
	patience.Watch(t)
	d, err := dns.New(config, options...)
	require.NoError(t, err)
	return d
}

func lookup(t testing.TB, d discovery.Discovery, service string) discovery.Targets {
	t.Helper()
	found, err := d.Lookup(t.Context(), discovery.Query{Service: service})
	require.NoError(t, err)
	return found
}

func refused(t testing.TB, d discovery.Discovery, service string) error {
	t.Helper()
	found, err := d.Lookup(t.Context(), discovery.Query{Service: service})
	require.Error(t, err)
	require.Empty(t, found.List)
	return err
}

func host(text string) discovery.Target {
	return discovery.Target{Host: text, IP: netip.MustParseAddr(text)}
}

// edited changes the answer of the server before it is sent.
func edited(t testing.TB, edit func(e dnstest.Exchange, answer *miekg.Msg)) func(dnstest.Exchange) [][]byte {
	t.Helper()
	return func(e dnstest.Exchange) [][]byte {
		answer := new(miekg.Msg)
		if err := answer.Unpack(e.Answer); err != nil {
			t.Errorf("the answer of the server: %v", err)
		}
		edit(e, answer)
		packed, err := answer.Pack()
		if err != nil {
			t.Errorf("the edited answer: %v", err)
		}
		return [][]byte{packed}
	}
}

func answering(t testing.TB, code int) func(dnstest.Exchange) [][]byte {
	t.Helper()
	return edited(t, func(_ dnstest.Exchange, answer *miekg.Msg) { answer.Rcode, answer.Answer = code, nil })
}

func silent(dnstest.Exchange) [][]byte { return nil }

func TestDNSKeepsTheContract(t *testing.T) {
	const largest = 1000 // The services, with their addresses, that fit into one message.
	name := "_management._tcp.quorate."
	discoverytest.TestSource(t, discoverytest.Source{
		Holding: func(t testing.TB, n int) discovery.Discovery {
			t.Helper()
			server := dnstest.Start(t)
			var services []string
			for i := range n {
				target := fmt.Sprintf("n%d.quorate.", i)
				services = append(services, "0 0 7946 "+target)
				server.Set(target, "A", time.Minute, fmt.Sprintf("10.1.%d.%d", i/250, i%250))
			}
			server.Set(name, "SRV", time.Minute, services...)
			return newDNS(t, settings(server))
		},
		Most: largest,
		Failing: func(t testing.TB) discovery.Discovery {
			t.Helper()
			server := dnstest.Start(t)
			server.Intercept(answering(t, miekg.RcodeServerFailure))
			return newDNS(t, settings(server))
		},
		Silent: func(t testing.TB) discovery.Discovery {
			t.Helper()
			server := dnstest.Start(t)
			server.Intercept(silent)
			return newDNS(t, settings(server))
		},
	})
}

func TestNameResolvesToAllItsAddresses(t *testing.T) {
	server := dnstest.Start(t)
	server.Set("bank.example.", "A", time.Minute, "10.0.0.2", "10.0.0.1")
	server.Set("bank.example.", "AAAA", 20*time.Second, "fd00::1", "::ffff:10.0.0.1")
	config := settings(server)
	config.Port = 7626
	found := lookup(t, newDNS(t, config), "Bank.Example")
	want := []discovery.Target{host("10.0.0.2"), host("10.0.0.1"), host("fd00::1")}
	for i := range want {
		want[i].Port = 7626
	}
	require.Equal(t, want, found.List)
	require.Equal(t, "the addresses of bank.example.", found.Reason)
	require.InDelta(t, 20, found.TTL.Seconds(), 1, "the least of both families")
}

func TestFamilySaysWhichAddressesCount(t *testing.T) {
	server := dnstest.Start(t)
	server.Set("bank.", "A", time.Minute, "10.0.0.1")
	server.Set("bank.", "AAAA", time.Minute, "fd00::1")
	server.Set("_a._b.bank.", "SRV", time.Minute, "0 0 1 bank.")
	for family, want := range map[string]string{dns.FamilyIPv4: "10.0.0.1", dns.FamilyIPv6: "fd00::1"} {
		config := settings(server)
		config.Family = family
		require.Equal(t, []discovery.Target{host(want)}, lookup(t, newDNS(t, config), "bank").List)
		found := lookup(t, newDNS(t, config), "_a._b.bank")
		require.Len(t, found.List, 1)
		require.Equal(t, want, found.List[0].IP.String())
	}
}

// The addresses of one family may be those of half of the nodes, which would form a cluster of
// their own.
func TestAnswerForOneOfTwoFamiliesIsNone(t *testing.T) {
	server := dnstest.Start(t)
	server.Set("bank.", "A", time.Minute, "10.0.0.1")
	server.Intercept(edited(t, func(e dnstest.Exchange, answer *miekg.Msg) {
		if e.Kind == "AAAA" {
			answer.Rcode = miekg.RcodeServerFailure
		}
	}))
	require.ErrorContains(t, refused(t, newDNS(t, settings(server)), "bank"), "AAAA of bank.: ")
	config := settings(server)
	config.Family = dns.FamilyIPv4
	require.Len(t, lookup(t, newDNS(t, config), "bank").List, 1)
}

func TestServicesComeWithPortsAndAddressesInTheirOrder(t *testing.T) {
	for _, omit := range []bool{false, true} {
		t.Run(fmt.Sprintf("addresses omitted: %v", omit), func(t *testing.T) {
			server := dnstest.Start(t)
			if omit {
				server.OmitAddresses()
			}
			server.Set("_management._tcp.bank.", "SRV", time.Minute, "20 0 7626 c.bank.", "10 1 7626 B.bank.",
				"10 5 7627 a.bank.", "10 1 0 b.bank.", "30 0 1 gone.bank.")
			server.Set("a.bank.", "A", time.Minute, "10.0.0.1", "10.0.0.11")
			server.Set("b.bank.", "A", 30*time.Second, "10.0.0.2")
			server.Set("c.bank.", "AAAA", time.Minute, "fd00::3")
			d := newDNS(t, settings(server))
			found, err := d.Lookup(t.Context(), discovery.Query{Service: "bank", Port: "management", Protocol: "tcp"})
			require.NoError(t, err)
			var text []string
			for _, target := range found.List {
				text = append(text, target.String()+" "+target.IP.String())
			}
			require.Equal(t, []string{
				"a.bank:7627 10.0.0.1", "a.bank:7627 10.0.0.11", "b.bank 10.0.0.2", "b.bank:7626 10.0.0.2",
				"c.bank:7626 fd00::3",
			}, text)
			require.Equal(t, "the services of _management._tcp.bank., 1 of 5 without an address", found.Reason)
			require.LessOrEqual(t, found.TTL, 30*time.Second)
			again, err := d.Lookup(t.Context(), discovery.Query{Service: "_management._TCP.bank"})
			require.NoError(t, err)
			require.Equal(t, found.List, again.List)
		})
	}
}

func TestServiceThatIsNotOfferedHasNoContactPoints(t *testing.T) {
	server := dnstest.Start(t)
	server.Set("_a._b.bank.", "SRV", time.Minute, "0 0 0 .")
	found := lookup(t, newDNS(t, settings(server)), "_a._b.bank")
	require.Empty(t, found.List)
	require.Contains(t, found.Reason, "no records of _a._b.bank.")
	require.Zero(t, server.Asked(".", "A"), "that is no host")
}

// Thousands of services on a host with thousands of addresses fit into two answers, and would
// be millions of contact points.
func TestServicesTimesAddressesAreBounded(t *testing.T) {
	server := dnstest.Start(t)
	server.OmitAddresses()
	var services, addresses []string
	for i := range 2000 {
		services = append(services, fmt.Sprintf("0 0 %d host.bank.", i+1))
		addresses = append(addresses, fmt.Sprintf("10.1.%d.%d", i/250, i%250))
	}
	server.Set("_a._b.bank.", "SRV", time.Minute, services...)
	server.Set("host.bank.", "A", time.Minute, addresses[:5]...)
	require.Len(t, lookup(t, newDNS(t, settings(server)), "_a._b.bank").List, discovery.MaxTargets)
	server.Set("host.bank.", "A", time.Minute, addresses...)
	d := newDNS(t, settings(server))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.ErrorContains(t, refused(t, d, "_a._b.bank"), "_a._b.bank. has more than 10000 contact points")
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(50<<20), "four million would be more")
}

// clock is a clock that a test moves.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time              { return time.Unix(0, c.ns.Load()) }
func (c *clock) advance(after time.Duration) { c.ns.Add(int64(after)) }

func TestAnswerIsKeptUntilItsTimeToLiveIsOver(t *testing.T) {
	for _, tc := range []struct {
		name      string
		ttl, want time.Duration
	}{
		{"as the record says", 30 * time.Second, 30 * time.Second},
		{"not below the floor", 0, 2 * time.Second},
		{"not above the ceiling", 100_000 * time.Hour, time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := dnstest.Start(t)
			server.Set("bank.", "A", tc.ttl, "10.0.0.1")
			config := settings(server)
			config.Family, config.MinTTL, config.MaxTTL = dns.FamilyIPv4, 2*time.Second, time.Minute
			time := new(clock)
			d := newDNS(t, config, dns.WithClock(time.now))
			require.Equal(t, tc.want, lookup(t, d, "bank").TTL)
			server.Set("bank.", "A", tc.ttl, "10.0.0.2")
			time.advance(tc.want - 1)
			found := lookup(t, d, "bank")
			require.Equal(t, []discovery.Target{host("10.0.0.1")}, found.List)
			require.EqualValues(t, 1, found.TTL, "what is left of it")
			require.Equal(t, 1, server.Asked("bank.", "A"))
			time.advance(1)
			require.Equal(t, []discovery.Target{host("10.0.0.2")}, lookup(t, d, "bank").List)
			require.Equal(t, 2, server.Asked("bank.", "A"))
		})
	}
}

func TestTimeToLiveWithItsHighestBitSetIsNone(t *testing.T) {
	server := dnstest.Start(t)
	server.Set("bank.", "A", time.Hour, "10.0.0.1")
	server.Intercept(edited(t, func(_ dnstest.Exchange, answer *miekg.Msg) {
		for _, rr := range answer.Answer {
			rr.Header().Ttl = 1 << 31
		}
	}))
	config := settings(server)
	config.Family = dns.FamilyIPv4
	require.LessOrEqual(t, lookup(t, newDNS(t, config), "bank").TTL, config.MinTTL)
}

// The first node of a service looks it up before its peers have records, and must find these
// soon.
func TestThatThereIsNothingIsBelievedForAShortTime(t *testing.T) {
	for _, tc := range []struct {
		name      string
		ttl, want time.Duration
	}{
		{"as the zone says", 3 * time.Second, 3 * time.Second},
		{"not below the floor", 0, time.Second},
		{"not above the ceiling", time.Hour, 5 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := dnstest.Start(t)
			server.SetNegativeTTL(tc.ttl)
			time := new(clock)
			d := newDNS(t, settings(server), dns.WithClock(time.now))
			found := lookup(t, d, "bank")
			require.Empty(t, found.List)
			require.Equal(t, tc.want, found.TTL)
			require.Equal(t, "no records of bank.", found.Reason)
			server.Set("bank.", "A", tc.ttl, "10.0.0.1")
			time.advance(tc.want - 1)
			require.Empty(t, lookup(t, d, "bank").List)
			time.advance(1)
			require.Len(t, lookup(t, d, "bank").List, 1)
		})
	}
}

// A zone gives two times for which a client may remember that there are no records. The shorter
// one counts.
func TestThatThereIsNothingIsBelievedNoLongerThanTheRecordOfTheZone(t *testing.T) {
	server := dnstest.Start(t)
	server.Intercept(edited(t, func(_ dnstest.Exchange, answer *miekg.Msg) { answer.Ns[0].Header().Ttl = 2 }))
	require.InDelta(t, 2, lookup(t, newDNS(t, settings(server)), "bank").TTL.Seconds(), 1)
}

func TestErrorIsNotKept(t *testing.T) {
	server := dnstest.Start(t)
	server.Set("bank.", "A", time.Minute, "10.0.0.1")
	server.Intercept(answering(t, miekg.RcodeServerFailure))
	d := newDNS(t, settings(server))
	require.ErrorContains(t, refused(t, d, "bank"), server.Addr()+": it answers SERVFAIL")
	server.Intercept(nil)
	require.Len(t, lookup(t, d, "bank").List, 1)
}

// An answer whose time is over is not given, even where no new one can be had.
func TestAnswerIsNotKeptLongerWhereServersFail(t *testing.T) {
	server := dnstest.Start(t)
	server.Set("bank.", "A", time.Minute, "10.0.0.1")
	time := new(clock)
	d := newDNS(t, settings(server), dns.WithClock(time.now))
	found := lookup(t, d, "bank")
	server.Intercept(answering(t, miekg.RcodeServerFailure))
	require.Len(t, lookup(t, d, "bank").List, 1)
	time.advance(found.TTL)
	require.Error(t, refused(t, d, "bank"))
}

func TestAliasesAreFollowed(t *testing.T) {
	server := dnstest.Start(t)
	server.Set("bank.", "CNAME", 20*time.Second, "a.bank.")
	server.Set("a.bank.", "CNAME", time.Minute, "B.bank.")
	server.Set("b.bank.", "A", time.Minute, "10.0.0.1")
	found := lookup(t, newDNS(t, settings(server)), "bank")
	require.Equal(t, []discovery.Target{host("10.0.0.1")}, found.List)
	require.LessOrEqual(t, found.TTL, 20*time.Second)

	// A server that does not follow aliases itself gives one alias at a time.
	server.Intercept(edited(t, func(_ dnstest.Exchange, answer *miekg.Msg) {
		if len(answer.Answer) > 1 {
			answer.Answer = answer.Answer[:1]
		}
	}))
	found = lookup(t, newDNS(t, settings(server)), "bank")
	require.Equal(t, []discovery.Target{host("10.0.0.1")}, found.List)
	require.LessOrEqual(t, found.TTL, 20*time.Second)
}

func TestAliasOfNothingIsNothing(t *testing.T) {
	server := dnstest.Start(t)
	server.Set("bank.", "CNAME", time.Minute, "gone.bank.")
	require.Empty(t, lookup(t, newDNS(t, settings(server)), "bank").List)
	require.Zero(t, server.Asked("gone.bank.", "A"), "the answer says that it does not exist")
}

func TestAliasesWithoutEndAreAnError(t *testing.T) {
	chain := func(server *dnstest.Server, length int) {
		for i := range length {
			server.Set(fmt.Sprintf("a%d.", i), "CNAME", time.Minute, fmt.Sprintf("a%d.", i+1))
		}
		server.Set(fmt.Sprintf("a%d.", length), "A", time.Minute, "10.0.0.1")
	}
	one := func(_ dnstest.Exchange, answer *miekg.Msg) {
		answer.Answer = answer.Answer[:min(1, len(answer.Answer))]
	}
	for _, tc := range []struct {
		name string
		zone func(*dnstest.Server)
		edit func(dnstest.Exchange, *miekg.Msg)
		want string
	}{
		{"circle in one answer", func(s *dnstest.Server) { chain(s, 2); s.Set("a2.", "CNAME", 0, "a0.") }, nil, "in a circle"},
		{"circle over answers", func(s *dnstest.Server) { chain(s, 2); s.Set("a2.", "CNAME", 0, "a0.") }, one, "in a circle"},
		{"circle behind an alias", func(s *dnstest.Server) { chain(s, 2); s.Set("a2.", "CNAME", 0, "a1.") }, one, "more than 16"},
		{"alias of itself", func(s *dnstest.Server) { s.Set("a0.", "CNAME", 0, "a0.") }, nil, "in a circle"},
		{"chain in one answer", func(s *dnstest.Server) { chain(s, 17) }, nil, "more than 16"},
		{"chain over answers", func(s *dnstest.Server) { chain(s, 17) }, one, "more than 16"},
		{"chain of the greatest length", func(s *dnstest.Server) { chain(s, 16) }, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := dnstest.Start(t)
			tc.zone(server)
			if tc.edit != nil {
				server.Intercept(edited(t, tc.edit))
			}
			config := settings(server)
			config.Family = dns.FamilyIPv4
			d := newDNS(t, config)
			if tc.want == "" {
				require.Len(t, lookup(t, d, "a0").List, 1)
				return
			}
			require.ErrorContains(t, refused(t, d, "a0"), tc.want)
		})
	}
}

// An answer in which one address is not that of a single machine is not believed at all.
func TestAddressThatIsNotOfOneMachineSpoilsTheAnswer(t *testing.T) {
	for _, address := range []string{"0.0.0.0", "224.0.0.1"} {
		server := dnstest.Start(t)
		server.Set("bank.", "A", time.Minute, "10.0.0.1", address)
		require.ErrorIs(t, refused(t, newDNS(t, settings(server)), "bank"), discovery.ErrBadTarget)
	}
}

func TestNameThatIsNoneIsNotAskedFor(t *testing.T) {
	server := dnstest.Start(t)
	d := newDNS(t, settings(server))
	for _, name := range []string{"", ".", "a..b", "a b", "ä", strings.Repeat("a", 64), strings.Repeat("a.", 127) + "b"} {
		require.Error(t, refused(t, d, name))
	}
	_, err := d.Lookup(t.Context(), discovery.Query{Service: "a", Port: "b c", Protocol: "tcp"})
	require.Error(t, err)
	require.Empty(t, lookup(t, d, strings.Repeat("a.", 126)+"b").List, "the longest name")
	require.ErrorContains(t, refused(t, d, "x."+strings.Repeat("a", 64)), "a part of 64 bytes")
}

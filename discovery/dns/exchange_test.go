// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	miekg "github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/dns"
	"github.com/quorate/quorate/discovery/dns/dnstest"
)

// How servers are asked: first servers without an answer that can be used, and the next one;
// then TCP, servers without EDNS, forged answers, and many lookups at once; in the end the
// search list and the servers of resolv.conf.

// bankServer returns a server that knows one address, that of bank.example.
func bankServer(t testing.TB) *dnstest.Server {
	t.Helper()
	server := dnstest.Start(t)
	server.Set("bank.", "A", time.Minute, "10.0.0.1")
	return server
}

// closedPort returns an address at which no server listens.
func closedPort(t testing.TB) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	return conn.LocalAddr().String()
}

// The next server is asked after each kind of answer that cannot be used.
//
// covers B57, see docs/verification.md.
func TestNextServerIsAskedWhereOneHasNoAnswer(t *testing.T) {
	malformed := func(e dnstest.Exchange) [][]byte { return [][]byte{e.Answer[:len(e.Answer)-3]} }
	for name, fault := range map[string]func(dnstest.Exchange) [][]byte{
		"SERVFAIL": answering(t, miekg.RcodeServerFailure),
		"REFUSED":  answering(t, miekg.RcodeRefused),
		"NOTIMP":   answering(t, miekg.RcodeNotImplemented),
		"FORMERR":  answering(t, miekg.RcodeFormatError),
		"code 9":   answering(t, miekg.RcodeNotAuth),
		// The upper bits of a code are in another record: without them this is a success.
		"code 16": edited(t, func(_ dnstest.Exchange, answer *miekg.Msg) {
			answer.Answer, answer.Rcode = nil, miekg.RcodeBadVers
		}),
		"malformed": malformed,
		"does not ask others": edited(t, func(_ dnstest.Exchange, answer *miekg.Msg) {
			answer.RecursionAvailable, answer.Answer = false, nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			first, second := bankServer(t), bankServer(t)
			first.Intercept(fault)
			d := newDNS(t, settings(first, second))
			require.Equal(t, []discovery.Target{host("10.0.0.1")}, lookup(t, d, "bank").List)
			alone := newDNS(t, settings(first))
			err := refused(t, alone, "bank")
			require.ErrorContains(t, err, first.Addr()+": ")
			require.ErrorContains(t, err, name)
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		server := bankServer(t)
		config := settings(server)
		config.Servers = append([]string{closedPort(t)}, config.Servers...)
		require.Len(t, lookup(t, newDNS(t, config), "bank").List, 1)
	})
	t.Run("silent", func(t *testing.T) {
		first, second := bankServer(t), bankServer(t)
		first.Intercept(silent)
		config := settings(first, second)
		config.QueryTimeout = 300 * time.Millisecond
		require.Len(t, lookup(t, newDNS(t, config), "bank").List, 1)
	})
}

// After an answer that the name does not exist, no other server is asked for a better one.
func TestFirstServerThatKnowsIsBelieved(t *testing.T) {
	first, second := dnstest.Start(t), bankServer(t)
	require.Empty(t, lookup(t, newDNS(t, settings(first, second)), "bank").List)
	require.Zero(t, second.Asked("bank.", "A"))
}

func TestServersAreAskedInRounds(t *testing.T) {
	server := bankServer(t)
	var queries atomic.Int64
	fail := answering(t, miekg.RcodeServerFailure)
	server.Intercept(func(e dnstest.Exchange) [][]byte {
		if queries.Add(1) < 3 {
			return fail(e)
		}
		return [][]byte{e.Answer}
	})
	config := settings(server)
	config.Family, config.Rounds = dns.FamilyIPv4, 3
	require.Len(t, lookup(t, newDNS(t, config), "bank").List, 1)
	queries.Store(-10)
	require.Error(t, refused(t, newDNS(t, config), "bank"))
	require.EqualValues(t, -7, queries.Load())
}

// An answer of nearly 64 KiB is truncated over UDP, and read over TCP.
//
// covers B57, see docs/verification.md.
func TestLargeAnswerComesOverTCP(t *testing.T) {
	server := dnstest.Start(t)
	var addresses []string
	for i := range 4000 {
		addresses = append(addresses, fmt.Sprintf("10.0.%d.%d", i/250, i%250))
	}
	server.Set("bank.", "A", time.Minute, addresses...)
	var networks sync.Map
	server.Intercept(func(e dnstest.Exchange) [][]byte {
		if e.Kind == "A" {
			networks.Store(e.Network, len(e.Answer))
		}
		return [][]byte{e.Answer}
	})
	require.Len(t, lookup(t, newDNS(t, settings(server)), "bank").List, len(addresses))
	small, _ := networks.Load("udp")
	large, _ := networks.Load("tcp")
	require.LessOrEqual(t, small, 1232)
	require.Greater(t, large, 64_000)
}

// The server is reached over IPv6, which goes through other calls of the system.
func TestServerMayHaveAnAddressOfVersion6(t *testing.T) {
	packets, err := net.ListenPacket("udp", "[::1]:0")
	require.NoError(t, err)
	server := &miekg.Server{PacketConn: packets, Handler: miekg.HandlerFunc(func(w miekg.ResponseWriter, query *miekg.Msg) {
		answer := new(miekg.Msg).SetReply(query)
		rr, err := miekg.NewRR("bank. 60 IN AAAA fd00::1")
		if err != nil {
			t.Errorf("record: %v", err)
		}
		answer.RecursionAvailable, answer.Answer = true, []miekg.RR{rr}
		if err := w.WriteMsg(answer); err != nil {
			t.Errorf("answer: %v", err)
		}
	})}
	started := make(chan struct{})
	server.NotifyStartedFunc = func() { close(started) }
	var serving sync.WaitGroup
	// Ended by the cleanup, which waits.
	serving.Go(func() {
		if err := server.ActivateAndServe(); err != nil {
			t.Errorf("server: %v", err)
		}
	})
	<-started
	t.Cleanup(func() { require.NoError(t, server.Shutdown()); serving.Wait() })
	config := settings()
	config.Servers = []string{packets.LocalAddr().String()}
	require.Equal(t, []discovery.Target{host("fd00::1")}, lookup(t, newDNS(t, config), "bank").List)
}

func TestAnswerTruncatedOverTCPIsNone(t *testing.T) {
	server := bankServer(t)
	server.Intercept(edited(t, func(_ dnstest.Exchange, answer *miekg.Msg) { answer.Truncated = true }))
	require.ErrorContains(t, refused(t, newDNS(t, settings(server)), "bank"), "truncated over TCP too")
}

// Over TCP a server may announce a length and then send less.
func TestStreamThatEndsEarlyIsNoAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var served sync.WaitGroup
	// Ends when the listener is closed; waited for by the cleanup.
	served.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte{0xff, 0xff, 1, 2, 3})
			_ = conn.Close()
		}
	})
	t.Cleanup(func() { _ = listener.Close(); served.Wait() })
	path := filepath.Join(t.TempDir(), "resolv.conf")
	require.NoError(t, os.WriteFile(path, []byte("options use-vc\n"), 0o600))
	config := settings()
	config.ResolvConf, config.Servers = path, []string{listener.Addr().String()}
	require.ErrorContains(t, refused(t, newDNS(t, config), "bank"), "tcp: ")
}

func TestServerWithoutExtensionsIsAskedWithoutThem(t *testing.T) {
	server := bankServer(t)
	var refusals atomic.Int64
	server.Intercept(func(e dnstest.Exchange) [][]byte {
		query := new(miekg.Msg)
		if err := query.Unpack(e.Query); err != nil {
			t.Errorf("the query: %v", err)
		}
		if query.IsEdns0() == nil {
			return [][]byte{e.Answer}
		}
		refusals.Add(1)
		return [][]byte{{e.Query[0], e.Query[1], 0x80, miekg.RcodeFormatError, 0, 0, 0, 0, 0, 0, 0, 0}}
	})
	require.Len(t, lookup(t, newDNS(t, settings(server)), "bank").List, 1)
	require.EqualValues(t, 2, refusals.Load(), "one for each family")
}

// A datagram with a wrong id or question, or that is no answer, was sent by an attacker who
// wants it to be taken for the answer, or the question to be given up. Neither happens, and
// records that were not asked for do not count either.
//
// covers B57, see docs/verification.md.
func TestForgedAnswersAreNotBelieved(t *testing.T) {
	forge := func(edit func(*miekg.Msg)) func(e dnstest.Exchange) []byte {
		return func(e dnstest.Exchange) []byte {
			forged := new(miekg.Msg)
			if err := forged.Unpack(e.Query); err != nil {
				t.Errorf("the query: %v", err)
			}
			forged.Response, forged.RecursionAvailable = true, true
			evil, err := miekg.NewRR(e.Name + " 600 IN A 6.6.6.6")
			if err != nil {
				t.Errorf("record: %v", err)
			}
			forged.Answer = []miekg.RR{evil}
			edit(forged)
			packed, err := forged.Pack()
			if err != nil {
				t.Errorf("the forged answer: %v", err)
			}
			return packed
		}
	}
	for name, forged := range map[string]func(e dnstest.Exchange) []byte{
		"wrong id":      forge(func(m *miekg.Msg) { m.Id++ }),
		"wrong name":    forge(func(m *miekg.Msg) { m.Question[0].Name = "evil." }),
		"wrong type":    forge(func(m *miekg.Msg) { m.Question[0].Qtype = miekg.TypeTXT }),
		"wrong class":   forge(func(m *miekg.Msg) { m.Question[0].Qclass = miekg.ClassCHAOS }),
		"no question":   forge(func(m *miekg.Msg) { m.Question = nil }),
		"two questions": forge(func(m *miekg.Msg) { m.Question = append(m.Question, m.Question[0]) }),
		"a query":       forge(func(m *miekg.Msg) { m.Response = false }),
		"other opcode":  forge(func(m *miekg.Msg) { m.Opcode = miekg.OpcodeNotify }),
		"nothing":       func(dnstest.Exchange) []byte { return []byte{} },
		"half a header": func(e dnstest.Exchange) []byte { return e.Answer[:7] },
		"64 KiB":        func(dnstest.Exchange) []byte { return bytes.Repeat([]byte{0xc0}, 65_000) },
	} {
		t.Run(name, func(t *testing.T) {
			server := bankServer(t)
			var overTCP atomic.Bool
			server.Intercept(func(e dnstest.Exchange) [][]byte {
				if e.Network == "tcp" {
					overTCP.Store(true)
					return [][]byte{e.Answer}
				}
				return [][]byte{forged(e), e.Answer}
			})
			want := []discovery.Target{host("10.0.0.1")}
			require.Equal(t, want, lookup(t, newDNS(t, settings(server)), "bank").List)
			require.False(t, overTCP.Load(), "one stray datagram changes nothing")

			// Enough for the client to go over to TCP, where a flood does not reach it, even
			// if the true answer is lost among so many.
			config := settings(server)
			config.QueryTimeout = time.Second
			server.Intercept(func(e dnstest.Exchange) [][]byte {
				if e.Network == "tcp" {
					return [][]byte{e.Answer}
				}
				return slices.Repeat([][]byte{forged(e)}, 40)
			})
			require.Equal(t, want, lookup(t, newDNS(t, config), "bank").List)
			server.Intercept(func(e dnstest.Exchange) [][]byte { return slices.Repeat([][]byte{forged(e)}, 20) })
			config.Rounds = 1
			require.Error(t, refused(t, newDNS(t, config), "bank"))
		})
	}
}

func TestRecordsThatNobodyAskedForAreLeftAlone(t *testing.T) {
	server := bankServer(t)
	server.Set("_a._b.bank.", "SRV", time.Minute, "0 0 1 host.bank.")
	server.Set("host.bank.", "A", time.Minute, "10.0.0.7")
	server.Intercept(edited(t, func(_ dnstest.Exchange, answer *miekg.Msg) {
		for _, text := range []string{"evil. 5 IN A 6.6.6.6", "bank. 60 CH A 6.6.6.6", "bank. 60 IN TXT x"} {
			rr, err := miekg.NewRR(text)
			if err != nil {
				t.Errorf("record: %v", err)
			}
			answer.Answer, answer.Extra = append(answer.Answer, rr), append(answer.Extra, rr)
		}
	}))
	d := newDNS(t, settings(server))
	require.Equal(t, []discovery.Target{host("10.0.0.1")}, lookup(t, d, "bank").List)
	found := lookup(t, d, "_a._b.bank")
	require.Len(t, found.List, 1)
	require.Equal(t, "10.0.0.7", found.List[0].IP.String())
	require.Greater(t, found.TTL, 50*time.Second, "what they say of their time does not count")
	server.Intercept(nil)
	require.Empty(t, lookup(t, d, "evil").List, "not remembered either")
}

func TestManyLookupsAreOneQuestion(t *testing.T) {
	server := bankServer(t)
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	server.Intercept(func(e dnstest.Exchange) [][]byte {
		arrived <- struct{}{}
		<-release
		return [][]byte{e.Answer}
	})
	config := settings(server)
	config.Family = dns.FamilyIPv4
	d := newDNS(t, config)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			found, err := d.Lookup(t.Context(), discovery.Query{Service: "bank"})
			if err != nil || len(found.List) != 1 {
				t.Errorf("found %v, %v", found, err)
			}
		})
	}
	<-arrived
	close(release)
	all.Wait()
	require.Equal(t, 1, server.Asked("bank.", "A"))
}

func TestSearchListCompletesNames(t *testing.T) {
	server := dnstest.Start(t)
	path := filepath.Join(t.TempDir(), "resolv.conf")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("nameserver 10.9.9.9\nsearch one.example two.example\noptions ndots:2\n")
	config := settings(server)
	config.ResolvConf = path
	server.Set("bank.two.example.", "A", time.Minute, "10.0.0.2")
	server.Set("bank.", "A", time.Minute, "10.0.0.9")
	server.Set("a.b.c.", "A", time.Minute, "10.0.0.3")
	server.Set("a.b.c.one.example.", "A", time.Minute, "10.0.0.9")
	d := newDNS(t, config)
	require.Equal(t, []discovery.Target{host("10.0.0.2")}, lookup(t, d, "bank").List)
	require.Equal(t, []discovery.Target{host("10.0.0.3")}, lookup(t, d, "a.b.c").List)
	require.Equal(t, []discovery.Target{host("10.0.0.9")}, lookup(t, d, "bank.").List)
	found := lookup(t, d, "shop")
	require.Equal(t, "no records of shop.one.example., shop.two.example., shop.", found.Reason)

	server.Intercept(edited(t, func(e dnstest.Exchange, answer *miekg.Msg) {
		if e.Name == "inn.one.example." {
			answer.Rcode = miekg.RcodeServerFailure
		}
	}))
	server.Set("inn.two.example.", "A", time.Minute, "10.0.0.9")
	require.ErrorContains(t, refused(t, d, "inn"), "a name that is complete ends with a dot")

	write("search two.example\n")
	require.Len(t, lookup(t, d, "inn").List, 1, "the file is read anew")
	require.NoError(t, os.Remove(path))
	require.Len(t, lookup(t, d, "bank").List, 1, "without the file there is no search list")
}

func TestServersAreThoseOfTheFile(t *testing.T) {
	config := settings()
	config.ResolvConf = filepath.Join(t.TempDir(), "resolv.conf")
	d := newDNS(t, config)
	require.ErrorIs(t, refused(t, d, "bank"), os.ErrNotExist)
	require.NoError(t, os.WriteFile(config.ResolvConf, make([]byte, 64<<10+1), 0o600))
	require.ErrorContains(t, refused(t, d, "bank"), "more than 65536 bytes")
	require.NoError(t, os.Remove(config.ResolvConf))
	require.NoError(t, os.Mkdir(config.ResolvConf, 0o700))
	require.Error(t, refused(t, d, "bank"))
}

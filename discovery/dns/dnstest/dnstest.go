// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package dnstest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// From a query to its answer: answer counts the query, resolve finds the records of the name
// and of its aliases, accompany adds the addresses of hosts, and the message is cut to the
// size that fits. handler shows the message to the interceptor, if there is one, and sends
// what the interceptor returns.

const (
	// portsTried is how many ports are tried until one is free for UDP and TCP.
	portsTried = 20
	// plainBytes is how much a client without EDNS takes over UDP (RFC 1035).
	plainBytes = 512
	// maxAliases is the longest chain of aliases in the zone.
	maxAliases = 100
)

// Exchange is a query and the answer that the server would give.
type Exchange struct {
	// Network is "udp" or "tcp".
	Network string
	// Name is the name that was asked for, in lower case with the dot at its end, and Kind
	// the type of its records, such as "A".
	Name, Kind string
	// Query and Answer are the messages.
	Query, Answer []byte
}

// Server is a running DNS server.
type Server struct {
	addr    string
	servers []*dns.Server
	running sync.WaitGroup

	mu        sync.Mutex
	records   map[string][]dns.RR // By name in lower case.
	asked     map[string]int      // By name and type.
	negative  time.Duration
	bare      bool
	intercept func(Exchange) [][]byte
	failed    error // Why the server does not answer any more.
}

// Start starts a server without records on a free port, which ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := Listen()
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return s
}

// Listen starts a server like [Start], where there is no test. Close ends it.
func Listen() (*Server, error) {
	packets, listener, err := listen()
	if err != nil {
		return nil, fmt.Errorf("dnstest: %w", err)
	}
	s := &Server{
		addr:     listener.Addr().String(),
		records:  map[string][]dns.RR{},
		asked:    map[string]int{},
		negative: time.Minute,
	}
	s.servers = []*dns.Server{
		{PacketConn: packets, Handler: s.handler("udp")},
		{Listener: listener, Handler: s.handler("tcp")},
	}
	for _, server := range s.servers {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		// Started here, ended and waited for by Close.
		s.running.Go(func() {
			if err := server.ActivateAndServe(); err != nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.failed = errors.Join(s.failed, err)
			}
		})
		<-started
	}
	return s, nil
}

// Close ends the server. Interceptors that are still running after a second are left to
// themselves. The error says why the server had ended before.
func (s *Server) Close() error {
	//quorate:realtime So long the server waits for its interceptors, as is documented.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var faults []error
	for _, server := range s.servers {
		if err := server.ShutdownContext(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			faults = append(faults, err)
		}
	}
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(append(faults, s.failed)...); err != nil {
		return fmt.Errorf("dnstest: %w", err)
	}
	return nil
}

func listen() (net.PacketConn, net.Listener, error) {
	var last error
	var config net.ListenConfig
	for range portsTried {
		listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		packets, err := config.ListenPacket(context.Background(), "udp", listener.Addr().String())
		if err == nil {
			return packets, listener, nil
		}
		last = err
		if err := listener.Close(); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, last
}

// Addr returns the address and port of the server, the same for UDP and TCP.
func (s *Server) Addr() string { return s.addr }

// Set replaces the records of a name and type: "A", "AAAA", "CNAME" or "SRV", each value
// as in a zone file, such as "10 5 7946 node-1.bank.example.". No value: the name exists
// and has no such record. It panics for a value that is not valid.
func (s *Server) Set(name, kind string, ttl time.Duration, values ...string) {
	name = dns.CanonicalName(name)
	var list []dns.RR
	for _, value := range values {
		rr, err := dns.NewRR(fmt.Sprintf("%s %d IN %s %s", name, int64(ttl/time.Second), kind, value))
		if err != nil {
			panic(fmt.Sprintf("dnstest: %v", err))
		}
		list = append(list, rr)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rr := range s.records[name] {
		if rr.Header().Rrtype != dns.StringToType[kind] {
			list = append(list, rr)
		}
	}
	s.records[name] = list
}

// Remove removes a name with all its records: the name does not exist any more.
func (s *Server) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, dns.CanonicalName(name))
}

// SetNegativeTTL sets for how long a client may remember that there are no records, in place
// of 1 minute.
func (s *Server) SetNegativeTTL(ttl time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.negative = ttl
}

// OmitAddresses makes the server give services without the addresses of their hosts.
func (s *Server) OmitAddresses() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bare = true
}

// Asked returns how many queries there were for a name and type.
func (s *Server) Asked(name, kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[dns.CanonicalName(name)+" "+kind]
}

// Intercept makes f return the messages that are sent for each query, any number of them,
// which need not be answers. f runs for several queries at a time and may block. nil: the
// answer of the server is sent.
func (s *Server) Intercept(f func(Exchange) [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = f
}

func (s *Server) handler(network string) dns.Handler {
	return dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		answer := s.answer(network, query)
		packed, err := answer.Pack()
		if err != nil {
			return // A query to which no answer can be written gets none.
		}
		asked, err := query.Pack()
		if err != nil {
			return
		}
		s.mu.Lock()
		intercept := s.intercept
		s.mu.Unlock()
		messages := [][]byte{packed}
		if intercept != nil && len(query.Question) == 1 {
			q := query.Question[0]
			messages = intercept(Exchange{
				Network: network, Name: dns.CanonicalName(q.Name), Kind: dns.TypeToString[q.Qtype],
				Query: asked, Answer: packed,
			})
		}
		for _, message := range messages {
			if _, err := w.Write(message); err != nil {
				return // The client has gone.
			}
		}
	})
}

func (s *Server) answer(network string, query *dns.Msg) *dns.Msg {
	answer := new(dns.Msg).SetReply(query)
	answer.RecursionAvailable = true
	answer.Compress = true
	if len(query.Question) != 1 {
		answer.Rcode = dns.RcodeFormatError
		return answer
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := query.Question[0]
	s.asked[dns.CanonicalName(q.Name)+" "+dns.TypeToString[q.Qtype]]++
	s.resolve(answer, dns.CanonicalName(q.Name), q.Qtype)
	size := dns.MaxMsgSize
	if network == "udp" {
		size = plainBytes
	}
	if options := query.IsEdns0(); options != nil {
		answer.SetEdns0(plainBytes, false)
		if network == "udp" {
			size = int(options.UDPSize())
		}
	}
	answer.Truncate(size)
	return answer
}

// resolve adds the records of a name, its aliases and the records to which these lead.
func (s *Server) resolve(answer *dns.Msg, name string, kind uint16) {
	for range maxAliases {
		list, exists := s.records[name]
		alias := ""
		for _, rr := range list {
			if rr.Header().Rrtype == kind {
				answer.Answer = append(answer.Answer, rr)
				s.accompany(answer, rr)
			} else if c, ok := rr.(*dns.CNAME); ok {
				answer.Answer = append(answer.Answer, rr)
				alias = dns.CanonicalName(c.Target)
			}
		}
		switch {
		case alias != "":
			name = alias
			continue
		case !exists:
			answer.Rcode = dns.RcodeNameError
		}
		break
	}
	if len(answer.Answer) == 0 || answer.Rcode == dns.RcodeNameError {
		answer.Ns = append(answer.Ns, s.soa())
	}
}

// accompany adds the addresses of the host of a service.
func (s *Server) accompany(answer *dns.Msg, rr dns.RR) {
	service, ok := rr.(*dns.SRV)
	if !ok || s.bare {
		return
	}
	for _, address := range s.records[dns.CanonicalName(service.Target)] {
		if kind := address.Header().Rrtype; kind == dns.TypeA || kind == dns.TypeAAAA {
			answer.Extra = append(answer.Extra, address)
		}
	}
}

func (s *Server) soa() dns.RR {
	ttl := uint32(s.negative / time.Second)
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: ttl},
		Ns:  "ns.test.", Mbox: "root.test.", Serial: 1, Minttl: ttl,
	}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	miekg "github.com/miekg/dns"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

var bank = dnsmessage.Question{
	Name: dnsmessage.MustNewName("bank."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET,
}

// packed writes an answer by the library miekg/dns, which shares no code with the package
// under test.
func packed(t testing.TB, edit func(*miekg.Msg), records ...string) []byte {
	t.Helper()
	query := new(miekg.Msg).SetQuestion("bank.", miekg.TypeA)
	query.Id = 7
	answer := new(miekg.Msg).SetReply(query)
	answer.Compress = true
	for _, text := range records {
		rr, err := miekg.NewRR(text)
		require.NoError(t, err)
		answer.Answer = append(answer.Answer, rr)
	}
	if edit != nil {
		edit(answer)
	}
	message, err := answer.Pack()
	require.NoError(t, err)
	return message
}

// FuzzAnswer reads any message: reading ends, and the records that it gives are within bounds.
func FuzzAnswer(f *testing.F) {
	f.Add(packed(f, nil, "bank. 60 IN A 10.0.0.1", "bank. 60 IN AAAA fd00::1"))
	f.Add(packed(f, nil, "bank. 60 IN CNAME a.bank.", "a.bank. 60 IN CNAME bank."))
	f.Add(packed(f, nil, "bank. 60 IN SRV 1 2 3 a.bank.", "a.bank. 60 IN TXT x"))
	f.Add(packed(f, func(m *miekg.Msg) {
		m.Rcode = miekg.RcodeNameError
		m.Ns = []miekg.RR{&miekg.SOA{Hdr: miekg.RR_Header{Name: ".", Rrtype: miekg.TypeSOA, Class: 1, Ttl: 9}, Ns: ".", Mbox: "."}}
		m.SetEdns0(1232, false)
	}))
	f.Add(packed(f, func(m *miekg.Msg) { m.Truncated = true }))
	f.Add([]byte("\x00\x07\x80\x01\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, message []byte) {
		if !answers(message, 7, bank) {
			return
		}
		r, err := read(message)
		if err != nil {
			require.ErrorIs(t, err, errMalformed)
			return
		}
		// No record is shorter than a name of one byte, its type, class, time and length.
		require.LessOrEqual(t, len(r.answers)+len(r.extra), len(message)/11)
		for _, rec := range append(r.answers, r.extra...) {
			require.True(t, rec.known())
			require.GreaterOrEqual(t, rec.ttl, time.Duration(0))
			require.LessOrEqual(t, rec.ttl, maxTTLSeconds*time.Second)
			require.Equal(t, strings.ToLower(rec.name), rec.name)
			require.Equal(t, rec.kind == dnsmessage.TypeA || rec.kind == dnsmessage.TypeAAAA, rec.ip.IsValid())
		}
		followed, err := r.follow("bank.", dnsmessage.TypeA)
		if err == nil {
			require.LessOrEqual(t, followed.aliases, maxAliases)
			for _, rec := range followed.records {
				require.Equal(t, followed.end, rec.name)
				require.LessOrEqual(t, followed.ttl, rec.ttl)
			}
		}
	})
}

// FuzzResolvConf reads any file: there is a server to ask, and each completed name is valid.
func FuzzResolvConf(f *testing.F) {
	f.Add("nameserver 10.0.0.1\nnameserver fd00::1\nsearch a.example b.example\noptions ndots:5 use-vc\n", "bank")
	f.Add("# nothing\n;\ndomain example\noptions ndots:-1 ndots:x ndots:99\nnameserver fe80::1%eth0", "a.b.c.d")
	f.Add("search . .. a..b \xff "+strings.Repeat("x", 300), "bank.")
	f.Add("search"+strings.Repeat(" a.example", 40), "bank")
	f.Add(strings.Repeat("nameserver 10.0.0.1\n", 20), strings.Repeat("a.", 126)+"b")
	f.Fuzz(func(t *testing.T, text, name string) {
		r := parseResolvConf([]byte(text))
		require.NotEmpty(t, r.servers)
		require.LessOrEqual(t, len(r.servers), maxServers)
		require.LessOrEqual(t, len(r.search), maxSearch)
		require.GreaterOrEqual(t, r.dots, 0)
		require.LessOrEqual(t, r.dots, maxDots)
		if _, err := absolute(name); err != nil {
			return
		}
		names := r.names(name)
		require.NotEmpty(t, names)
		for _, complete := range names {
			_, err := dnsmessage.NewName(complete)
			require.NoError(t, err)
			again, err := absolute(complete)
			require.NoError(t, err)
			require.True(t, strings.EqualFold(again, complete))
		}
	})
}

func TestResolvConfIsReadAsTheManualSays(t *testing.T) {
	r := parseResolvConf([]byte("domain old.example\nnameserver 10.0.0.1 # one\nnameserver none\n" +
		"nameserver fd00::1\n search a.example b.example. \noptions timeout:3 ndots:4 rotate\n"))
	require.Equal(t, []string{"a.example.", "b.example."}, r.search)
	require.Equal(t, []netip.AddrPort{
		netip.MustParseAddrPort("10.0.0.1:53"), netip.MustParseAddrPort("[fd00::1]:53"),
	}, r.servers)
	require.Equal(t, 4, r.dots)
	require.False(t, r.stream)
	require.Equal(t, []string{"x.a.example.", "x.b.example.", "x."}, r.names("x"))
	require.Equal(t, []string{"a.b.c.d.x.", "a.b.c.d.x.a.example.", "a.b.c.d.x.b.example."}, r.names("a.b.c.d.x"))
	require.Equal(t, "127.0.0.1:53", parseResolvConf(nil).servers[0].String())
	require.Equal(t, 1, parseResolvConf(nil).dots)
}

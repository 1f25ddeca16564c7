// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// One question and its answer as bytes. pack writes a question. answers says whether a
// message answers that question, before anything else of it is believed. read takes the
// records out of it, and follow finds those among them that the question was about.

const (
	// udpAnswerBytes is the largest answer that a query asks for over UDP (EDNS): it passes
	// every network in one piece, so that no half of it can be replaced under way.
	udpAnswerBytes = 1232
	// aliasesMax is the longest chain of aliases that is followed. Real chains have two or
	// three.
	aliasesMax = 16
	// ttlSecondsMax is the longest time to live. One with the highest bit set is to be read
	// as 0 (RFC 2181, section 8).
	ttlSecondsMax = 1<<31 - 1
)

var (
	errMalformed  = errors.New("the answer is malformed")
	errAliasLoop  = errors.New("the aliases lead in a circle")
	errAliasChain = fmt.Errorf("more than %d aliases", aliasesMax)
)

// pack writes the query for one question. With extended the query allows an answer of more
// than 512 bytes over UDP (EDNS), for which very old servers refuse the query.
func pack(id uint16, q dnsmessage.Question, extended bool) ([]byte, error) {
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: id, RecursionDesired: true})
	if err := errors.Join(b.StartQuestions(), b.Question(q)); err != nil {
		return nil, err
	}
	if extended {
		var h dnsmessage.ResourceHeader
		if err := errors.Join(
			h.SetEDNS0(udpAnswerBytes, dnsmessage.RCodeSuccess, false),
			b.StartAdditionals(), b.OPTResource(h, dnsmessage.OPTResource{}),
		); err != nil {
			return nil, err
		}
	}
	return b.Finish()
}

// answers reports whether a message answers the query with this id and question. Any
// other message was sent by a stranger, or answers an earlier query.
func answers(message []byte, id uint16, q dnsmessage.Question) bool {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil || !h.Response || h.ID != id || h.OpCode != 0 {
		return false
	}
	echoed, err := p.AllQuestions()
	if err != nil {
		return false
	}
	if len(echoed) == 0 {
		// A server that did not understand the query cannot repeat its question.
		return h.RCode == dnsmessage.RCodeFormatError || h.RCode == dnsmessage.RCodeNotImplemented
	}
	return len(echoed) == 1 && echoed[0].Type == q.Type && echoed[0].Class == q.Class &&
		strings.EqualFold(echoed[0].Name.String(), q.Name.String())
}

// record is one record of an answer: an address, an alias or a service.
type record struct {
	name string // In lower case, with the dot at its end.
	kind dnsmessage.Type
	ttl  time.Duration

	ip     netip.Addr // Of an address.
	target string     // Of an alias or a service, written like name.

	// The rest belongs to a service.
	port, priority, weight uint16
}

// reply is the content of a message that answers a question.
type reply struct {
	code      dnsmessage.RCode
	truncated bool
	// referral says that the server does not know the name and does not ask other servers.
	referral bool
	// answers are the records of the answer section, and extra those of the additional one.
	answers, extra []record
	// negative is for how long the name may be taken to have no such records.
	negative time.Duration
}

// read takes a message apart that answers a question. It skips records of unknown types.
func read(message []byte) (reply, error) {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil {
		return reply{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	r := reply{code: h.RCode, truncated: h.Truncated}
	if h.Truncated {
		return r, nil // What it has is not used, and may end in the middle of a record.
	}
	if err := r.sections(&p); err != nil {
		return reply{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	r.referral = h.RCode == dnsmessage.RCodeSuccess && !h.Authoritative && !h.RecursionAvailable &&
		len(r.answers) == 0
	return r, nil
}

func (r *reply) sections(p *dnsmessage.Parser) error {
	if err := p.SkipAllQuestions(); err != nil {
		return err
	}
	var err error
	if r.answers, err = r.records(p, p.AnswerHeader, p.SkipAnswer); err != nil {
		return err
	}
	if err := r.authority(p); err != nil {
		return err
	}
	r.extra, err = r.records(p, p.AdditionalHeader, p.SkipAdditional)
	return err
}

// records reads the records of a section until its end.
func (r *reply) records(
	p *dnsmessage.Parser, header func() (dnsmessage.ResourceHeader, error), skip func() error,
) ([]record, error) {
	var list []record
	for {
		h, err := header()
		switch {
		case errors.Is(err, dnsmessage.ErrSectionDone):
			return list, nil
		case err != nil:
			return nil, err
		}
		if h.Type == dnsmessage.TypeOPT {
			r.code = h.ExtendedRCode(r.code) // This record holds the upper bits of the code.
		}
		rec := record{name: strings.ToLower(h.Name.String()), kind: h.Type, ttl: seconds(h.TTL)}
		if h.Class != dnsmessage.ClassINET || !rec.known() {
			err = skip()
		} else if err = rec.body(p); err == nil {
			list = append(list, rec)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (rec *record) known() bool {
	switch rec.kind {
	case dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeCNAME, dnsmessage.TypeSRV:
		return true
	default:
		return false
	}
}

// body reads the content of a record of a known type.
func (rec *record) body(p *dnsmessage.Parser) error {
	switch rec.kind {
	case dnsmessage.TypeA:
		a, err := p.AResource()
		rec.ip = netip.AddrFrom4(a.A)
		return err
	case dnsmessage.TypeAAAA:
		a, err := p.AAAAResource()
		rec.ip = netip.AddrFrom16(a.AAAA).Unmap()
		return err
	case dnsmessage.TypeCNAME:
		c, err := p.CNAMEResource()
		rec.target = strings.ToLower(c.CNAME.String())
		return err
	default:
		s, err := p.SRVResource()
		rec.target = strings.ToLower(s.Target.String())
		rec.port, rec.priority, rec.weight = s.Port, s.Priority, s.Weight
		return err
	}
}

// authority reads for how long the answer that there are no records may be kept (RFC 2308,
// section 5).
func (r *reply) authority(p *dnsmessage.Parser) error {
	for {
		h, err := p.AuthorityHeader()
		switch {
		case errors.Is(err, dnsmessage.ErrSectionDone):
			return nil
		case err != nil:
			return err
		case h.Type != dnsmessage.TypeSOA || h.Class != dnsmessage.ClassINET:
			err = p.SkipAuthority()
		default:
			var soa dnsmessage.SOAResource
			soa, err = p.SOAResource()
			r.negative = min(seconds(h.TTL), seconds(soa.MinTTL))
		}
		if err != nil {
			return err
		}
	}
}

func seconds(ttl uint32) time.Duration {
	if ttl > ttlSecondsMax {
		return 0
	}
	return time.Duration(ttl) * time.Second
}

// recordSet is the part of a reply about one name and one type of record.
type recordSet struct {
	// end is the name behind all aliases of the reply, the name itself if there are none.
	end string
	// aliases counts the aliases between the name and the end.
	aliases int
	// records are the records of the name at the end.
	records []record
	// ttl is the least time to live of the aliases and the records; without any of them
	// it has no meaning.
	ttl time.Duration
}

// follow finds the records of a type for a name, over the aliases that the reply has.
// Records of other names are passed over: they were not asked for.
func (r *reply) follow(name string, kind dnsmessage.Type) (recordSet, error) {
	f := recordSet{end: name, ttl: time.Duration(ttlSecondsMax) * time.Second}
	aliases := map[string]record{}
	for _, rec := range r.answers {
		if rec.kind == dnsmessage.TypeCNAME {
			aliases[rec.name] = rec
		}
	}
	visited := map[string]bool{name: true}
	for {
		alias, ok := aliases[f.end]
		if !ok {
			break
		}
		f.end, f.ttl, f.aliases = alias.target, min(f.ttl, alias.ttl), f.aliases+1
		switch {
		case visited[f.end]:
			return recordSet{}, fmt.Errorf("%w at %s", errAliasLoop, f.end)
		case f.aliases > aliasesMax:
			return recordSet{}, fmt.Errorf("%w behind %s", errAliasChain, name)
		}
		visited[f.end] = true
	}
	for _, rec := range r.answers {
		if rec.kind == kind && rec.name == f.end {
			f.records = append(f.records, rec)
			f.ttl = min(f.ttl, rec.ttl)
		}
	}
	return f, nil
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discoverypolicy

import (
	"math"
	"net"
	"net/netip"
	"time"
	"unicode/utf8"

	"github.com/quorate/quorate/discovery"
	mwire "github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/plugins/internal/wire"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Queries are three texts; contact points are columns of one length. Both sides demand the
// same of either.

// maxQueryBytes is the limit of each text of a query, as the contract has it.
const maxQueryBytes = 256

// QueryToProto returns the request for a query. The error names the text that the contract
// does not allow.
func QueryToProto(q *discovery.Query) (*pluginv1.LookupRequest, error) {
	if err := validate(q); err != nil {
		return nil, err
	}
	return &pluginv1.LookupRequest{Service: q.Service, Port: q.Port, Protocol: q.Protocol}, nil
}

// QueryFromProto returns the query of a received request, checked.
func QueryFromProto(r *pluginv1.LookupRequest) (discovery.Query, error) {
	q := discovery.Query{Service: r.GetService(), Port: r.GetPort(), Protocol: r.GetProtocol()}
	if err := validate(&q); err != nil {
		return discovery.Query{}, err
	}
	return q, nil
}

// validate reports a query that the contract does not allow.
func validate(q *discovery.Query) error {
	for _, text := range []struct{ field, value string }{
		{"service", q.Service}, {"port", q.Port}, {"protocol", q.Protocol},
	} {
		if len(text.value) > maxQueryBytes {
			return wire.Malformed(text.field, "%d bytes, the limit is %d", len(text.value), maxQueryBytes)
		}
		if !utf8.ValidString(text.value) {
			return wire.Malformed(text.field, "is not UTF-8")
		}
	}
	return nil
}

// TargetsToProto returns the answer for the contact points that were found, checked. The
// reason is made one line, and cut where it is too long.
func TargetsToProto(t *discovery.Targets) (*pluginv1.LookupResponse, error) {
	if err := check(t); err != nil {
		return nil, err
	}
	p := &pluginv1.LookupResponse{Reason: wire.Line(t.Reason, wire.MaxTextBytes), TtlNanos: int64(t.TTL)}
	for _, target := range t.List {
		p.Host = append(p.Host, target.Host)
		p.Port = append(p.Port, uint32(target.Port))
		p.Ip = append(p.Ip, target.IP.AsSlice())
	}
	return p, nil
}

// check reports contact points that the contract does not allow.
func check(t *discovery.Targets) error {
	if err := t.Check(); err != nil {
		return wire.Malformed("host", "%v", err)
	}
	return nil
}

// The fields of an answer with contact points.
const (
	fieldHost, fieldPort, fieldIP, fieldReason, fieldTTL mwire.Number = 1, 2, 3, 4, 5
)

// answer is the answer of a plugin.
type answer struct {
	found discovery.Targets
	err   error // What is wrong with it.
}

// Decode reads the answer.
func (a *answer) Decode(b []byte) error {
	a.found, a.err = DecodeTargets(b)
	return nil
}

// DecodeTargets returns the contact points of a received answer, checked. A contact point has a dozen bytes, and fifty
// in memory, so it is made at once, without a message between.
func DecodeTargets(b []byte) (discovery.Targets, error) {
	c := columns{budget: mwire.BudgetOf(b)}
	n := mwire.Count(b, fieldHost)
	if n > discovery.MaxTargets {
		return discovery.Targets{}, wire.Malformed("host", "%d contact points, the limit is %d", n, discovery.MaxTargets)
	}
	var err error
	if c.found.List, err = mwire.List[discovery.Target](&c.budget, n); err != nil {
		return discovery.Targets{}, err
	}
	c.found.List = c.found.List[:n]
	if err := mwire.Each(b, c.set); err != nil {
		return discovery.Targets{}, err
	}
	if err := wire.SameLength("host", n, c.ports, c.ips); err != nil {
		return discovery.Targets{}, err
	}
	if err := check(&c.found); err != nil {
		return discovery.Targets{}, err
	}
	if n == 0 {
		c.found.List = nil
	}
	return c.found, nil
}

// columns are the columns of an answer that is being read.
type columns struct {
	budget            mwire.Budget
	found             discovery.Targets
	hosts, ports, ips int // How many there were.
}

// set reads a field.
func (c *columns) set(f *mwire.Field) (err error) {
	switch f.Number {
	case fieldHost:
		c.found.List[c.hosts].Host, err = f.Text(maxHostBytes)
		c.hosts++
	case fieldPort:
		return c.setPorts(f)
	case fieldIP:
		return c.setIP(f)
	case fieldReason:
		var reason string
		if reason, err = f.Text(wire.MaxTextBytes); err == nil {
			c.found.Reason = wire.Line(reason, wire.MaxTextBytes)
		}
	case fieldTTL:
		var ttl uint64
		ttl, err = f.Uint(math.MaxUint64)
		c.found.TTL = time.Duration(ttl) // A negative number is encoded so.
	}
	return err
}

// maxHostBytes is more than any host has.
const maxHostBytes = 1 << 10

// setPorts reads one port, or some that are packed.
func (c *columns) setPorts(f *mwire.Field) error {
	if f.Type == mwire.VarintType {
		return c.setPort(f.Value)
	}
	b, err := f.Data(len(f.Bytes))
	for err == nil && len(b) > 0 {
		port, n := mwire.Varint(b)
		if n == 0 {
			return wire.Malformed("port", "is cut off")
		}
		err, b = c.setPort(port), b[n:]
	}
	return err
}

func (c *columns) setPort(port uint64) error {
	switch {
	case c.ports == len(c.found.List):
		return wire.Malformed("port", "there are more than the %d hosts", c.ports)
	case port > math.MaxUint16:
		return wire.Malformed("port", "%d is more than 65535", port)
	}
	c.found.List[c.ports].Port = uint16(port)
	c.ports++
	return nil
}

func (c *columns) setIP(f *mwire.Field) error {
	ip, err := f.Data(net.IPv6len)
	switch {
	case err != nil:
		return err
	case c.ips == len(c.found.List):
		return wire.Malformed("ip", "there are more than the %d hosts", c.ips)
	case len(ip) > 0:
		var ok bool
		if c.found.List[c.ips].IP, ok = netip.AddrFromSlice(ip); !ok {
			return wire.Malformed("ip", "%d bytes are no IP address", len(ip))
		}
	}
	c.ips++
	return nil
}

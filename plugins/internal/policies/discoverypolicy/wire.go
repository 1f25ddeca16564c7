// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discoverypolicy

import (
	"net/netip"
	"time"
	"unicode/utf8"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/plugins/internal/wire"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Queries are three texts; contact points are columns of one length. Both sides demand the
// same of either.

// queryBytesMax is the limit of each text of a query, as the contract has it.
const queryBytesMax = 256

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
		if len(text.value) > queryBytesMax {
			return wire.Malformed(text.field, "%d bytes, the limit is %d", len(text.value), queryBytesMax)
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
	p := &pluginv1.LookupResponse{Reason: wire.Line(t.Reason, wire.TextBytesMax), TtlNanos: int64(t.TTL)}
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

// TargetsFromProto returns the contact points of a received answer, checked.
func TargetsFromProto(p *pluginv1.LookupResponse) (discovery.Targets, error) {
	n := len(p.GetHost())
	if n > discovery.TargetsMax {
		return discovery.Targets{}, wire.Malformed("host", "%d contact points, the limit is %d", n, discovery.TargetsMax)
	}
	if err := wire.SameLength("host", n, len(p.GetPort()), len(p.GetIp())); err != nil {
		return discovery.Targets{}, err
	}
	if len(p.GetReason()) > wire.TextBytesMax {
		return discovery.Targets{}, wire.Malformed("reason", "%d bytes, the limit is %d", len(p.GetReason()), wire.TextBytesMax)
	}
	t := discovery.Targets{Reason: wire.Line(p.GetReason(), wire.TextBytesMax), TTL: time.Duration(p.GetTtlNanos())}
	for i, host := range p.GetHost() {
		target, err := targetFromProto(host, p.GetPort()[i], p.GetIp()[i])
		if err != nil {
			return discovery.Targets{}, err
		}
		t.List = append(t.List, target)
	}
	if err := check(&t); err != nil {
		return discovery.Targets{}, err
	}
	return t, nil
}

// targetFromProto returns one contact point. Only what does not fit into a
// [discovery.Target] is refused here.
func targetFromProto(host string, port uint32, ip []byte) (discovery.Target, error) {
	t := discovery.Target{Host: host, Port: uint16(port)}
	if uint32(t.Port) != port {
		return t, wire.Malformed("port", "%d is more than 65535", port)
	}
	if len(ip) > 0 {
		var ok bool
		if t.IP, ok = netip.AddrFromSlice(ip); !ok {
			return t, wire.Malformed("ip", "%d bytes are no IP address", len(ip))
		}
	}
	return t, nil
}

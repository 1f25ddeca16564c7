// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
)

// A message names each node once, in a table, and refers to it by index. The sender
// builds a [table]; the receiver reads it as [nodes].

// maxNodes bounds the table of nodes of a message: members, tombstones, voters of two
// configs, clock entries of nodes that are gone, and nodes that declared members down.
const maxNodes = 8 * gossip.MaxMembers

// table gives each node of a message its index. Most lists of a message are sorted parts
// of the first one, so that the next node usually stands right after the one before it;
// the map is built when it does not.
type table struct {
	nodes  []gossip.NodeID
	index  map[gossip.NodeID]uint32
	expect uint32 // Index at which the next node is expected.
}

// place returns the index of a node in the table, and adds the node if it is new.
func (t *table) place(n gossip.NodeID) uint32 {
	if int(t.expect) < len(t.nodes) && t.nodes[t.expect] == n {
		t.expect++
		return t.expect - 1
	}
	if t.index == nil {
		t.index = make(map[gossip.NodeID]uint32, len(t.nodes))
		for i, known := range t.nodes {
			t.index[known] = uint32(i)
		}
	}
	i, ok := t.index[n]
	if !ok {
		i = uint32(len(t.nodes))
		t.index[n] = i
		t.nodes = append(t.nodes, n)
	}
	t.expect = i + 1
	return i
}

// places returns the indices of a list of nodes.
func (t *table) places(nodes []gossip.NodeID) []uint32 {
	t.expect = 0
	places := make([]uint32, len(nodes))
	for i, n := range nodes {
		places[i] = t.place(n)
	}
	return places
}

// set returns a set of nodes as bits.
func (t *table) set(nodes []gossip.NodeID) []byte {
	places := t.places(nodes)
	if len(places) == 0 {
		return nil
	}
	bits := make([]byte, slices.Max(places)/8+1)
	for _, p := range places {
		bits[p/8] |= 1 << (p % 8)
	}
	return bits
}

// rawNodes are the columns of a table of nodes. The hosts are a table of their own.
type rawNodes struct {
	hosts []string
	host  []uint32
	port  []uint16
	uid   []gossip.UID
}

func (p *rawNodes) fields(c *wire.Codec) {
	wire.Texts(c, 1, &p.hosts, math.MaxInt, maxNodes)
	wire.Uints(c, 2, &p.host, math.MaxUint32, maxNodes)
	wire.Uints(c, 3, &p.port, math.MaxUint16, maxNodes)
	wire.Fixeds(c, 4, &p.uid, maxNodes)
}

func (t *table) raw() rawNodes {
	p := rawNodes{host: make([]uint32, len(t.nodes)), port: make([]uint16, len(t.nodes)), uid: make([]gossip.UID, len(t.nodes))}
	hosts := make(map[string]uint32, len(t.nodes))
	for i, n := range t.nodes {
		host, ok := hosts[n.Address.Host]
		if !ok {
			host = uint32(len(p.hosts))
			hosts[n.Address.Host] = host
			p.hosts = append(p.hosts, n.Address.Host)
		}
		p.host[i], p.port[i], p.uid[i] = host, n.Address.Port, n.UID
	}
	return p
}

// nodes is the table of a received message.
type nodes []gossip.NodeID

func fromNodes(p *rawNodes) (nodes, error) {
	if err := columns("nodes", len(p.host), maxNodes, len(p.port), len(p.uid)); err != nil {
		return nil, err
	}
	if len(p.hosts) > len(p.host) {
		return nil, wire.Malformed("%d hosts of %d nodes", len(p.hosts), len(p.host))
	}
	t := make(nodes, len(p.host))
	for i, host := range p.host {
		if int64(host) >= int64(len(p.hosts)) {
			return nil, wire.Malformed("node %d at host %d of %d", i, host, len(p.hosts))
		}
		t[i] = gossip.NodeID{Address: gossip.Address{Host: p.hosts[host], Port: p.port[i]}, UID: p.uid[i]}
	}
	return t, nil
}

// at returns the node at an index.
func (t nodes) at(place uint32) (gossip.NodeID, error) {
	if int64(place) >= int64(len(t)) {
		return gossip.NodeID{}, wire.Malformed("node %d of %d", place, len(t))
	}
	return t[place], nil
}

// list returns the nodes at some indices, nil for none.
func (t nodes) list(places []uint32) ([]gossip.NodeID, error) {
	if len(places) > maxNodes {
		return nil, wire.Malformed("list of %d nodes", len(places))
	}
	var list []gossip.NodeID
	for _, place := range places {
		n, err := t.at(place)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

// set returns the nodes of a set of bits, sorted.
func (t nodes) set(bits []byte) ([]gossip.NodeID, error) {
	if len(bits) > (len(t)+7)/8 {
		return nil, wire.Malformed("set of %d bytes over %d nodes", len(bits), len(t))
	}
	var set []gossip.NodeID
	for i, b := range bits {
		for k := range uint32(8) {
			if b&(1<<k) == 0 {
				continue
			}
			n, err := t.at(uint32(i)*8 + k)
			if err != nil {
				return nil, err
			}
			set = append(set, n)
		}
	}
	slices.SortFunc(set, gossip.NodeID.Compare)
	return set, nil
}

func cluster(m *gossip.ClusterID, c *wire.Codec) {
	wire.Int(c, 1, &m.Born, math.MaxUint64)
	wire.Fixed(c, 2, &m.Nonce)
	wire.Fixed(c, 3, &m.Origin)
}

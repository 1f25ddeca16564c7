// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
	pb "github.com/quorate/quorate/membership/internal/proto/quorate/membership/v1"
)

// A message names each node once, in a table, and refers to it by index. The sender
// builds a [table]; the receiver reads it as [nodes].

// nodesMax bounds the table of nodes of a message: members, tombstones, voters of two
// configs, clock entries of nodes that are gone, and nodes that declared members down.
const nodesMax = 8 * gossip.MaxMembers

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

func (t *table) proto() *pb.Nodes {
	p := &pb.Nodes{
		Host: make([]uint32, len(t.nodes)), Port: make([]uint32, len(t.nodes)), Uid: make([]uint64, len(t.nodes)),
	}
	hosts := make(map[string]uint32, len(t.nodes))
	for i, n := range t.nodes {
		host, ok := hosts[n.Address.Host]
		if !ok {
			host = uint32(len(p.Hosts))
			hosts[n.Address.Host] = host
			p.Hosts = append(p.Hosts, n.Address.Host)
		}
		p.Host[i], p.Port[i], p.Uid[i] = host, uint32(n.Address.Port), uint64(n.UID)
	}
	return p
}

// nodes is the table of a received message.
type nodes []gossip.NodeID

func fromNodes(p *pb.Nodes) (nodes, error) {
	if err := columns("nodes", len(p.GetHost()), nodesMax, len(p.GetPort()), len(p.GetUid())); err != nil {
		return nil, err
	}
	if len(p.GetHosts()) > len(p.GetHost()) {
		return nil, wire.Malformed("%d hosts of %d nodes", len(p.GetHosts()), len(p.GetHost()))
	}
	t := make(nodes, len(p.GetHost()))
	for i, host := range p.GetHost() {
		if int(host) >= len(p.GetHosts()) {
			return nil, wire.Malformed("node %d at host %d of %d", i, host, len(p.GetHosts()))
		}
		var err error
		if t[i], err = wire.NodeOf(p.GetHosts()[host], p.GetPort()[i], p.GetUid()[i]); err != nil {
			return nil, err
		}
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
	if len(places) > nodesMax {
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

func toNode(n gossip.NodeID) *pb.Node {
	return &pb.Node{Host: n.Address.Host, Port: uint32(n.Address.Port), Uid: uint64(n.UID)}
}

func fromNode(p *pb.Node) (gossip.NodeID, error) {
	return wire.ValidNode(p.GetHost(), p.GetPort(), p.GetUid())
}

func toCluster(c gossip.ClusterID) *pb.ClusterId {
	if c.IsZero() {
		return nil
	}
	return &pb.ClusterId{Born: c.Born, Nonce: c.Nonce, Origin: c.Origin}
}

func fromCluster(p *pb.ClusterId) gossip.ClusterID {
	return gossip.ClusterID{Born: p.GetBorn(), Nonce: p.GetNonce(), Origin: p.GetOrigin()}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocationpolicy

import (
	"math"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/plugins/internal/wire"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// A message names each region once, in a table, and refers to it by index. The first half
// of the file writes that table, the second reads and checks it.

// These are the bits of a region's condition.
const (
	leaving = 1 << iota
	suspended
	unreachable
	known = leaving | suspended | unreachable
)

const maxRegionBytes = 512

// regionTable is the table of regions of a message that is being written: those of the
// request in their order, then other regions that the message names.
type regionTable struct {
	at     map[allocation.Region]uint32
	others []string
}

func newRegionTable(regions []allocation.RegionState) *regionTable {
	t := &regionTable{at: make(map[allocation.Region]uint32, len(regions))}
	for i := range regions {
		t.at[regions[i].ID] = uint32(i)
	}
	return t
}

// place returns the index of a region.
func (t *regionTable) place(id allocation.Region) uint32 {
	place, ok := t.at[id]
	if !ok {
		place = uint32(len(t.at))
		t.at[id] = place
		t.others = append(t.others, string(id))
	}
	return place
}

func regionsToProto(regions []allocation.RegionState) *pluginv1.Regions {
	n, shards := len(regions), 0
	for i := range regions {
		shards += len(regions[i].Shards)
	}
	p := &pluginv1.Regions{
		Id: make([]string, n), Zone: make([]uint32, n), AppVersion: make([]uint32, n), Roles: make([]uint32, n),
		Condition: make([]uint32, n), Capacity: make([]uint32, n), Load: make([]float64, n),
		ShardCount: make([]uint32, n), Shard: make([]uint32, 0, shards),
	}
	var zones, versions wire.Texts
	var roles wire.RoleSets
	for i := range regions {
		r := &regions[i]
		p.Id[i] = string(r.ID)
		p.Zone[i], p.AppVersion[i], p.Roles[i] = zones.Add(r.Zone), versions.Add(r.Version), roles.Add(r.Roles)
		p.Condition[i] = bit(r.Leaving, leaving) | bit(r.Suspended, suspended) | bit(r.Unreachable, unreachable)
		p.Capacity[i], p.Load[i] = r.Capacity, r.Load
		p.ShardCount[i] = uint32(len(r.Shards))
		for _, s := range r.Shards {
			p.Shard = append(p.Shard, uint32(s))
		}
	}
	p.Text, p.RoleSets = wire.JoinTables(&zones, &versions, p.AppVersion), roles.List
	return p
}

func bit(is bool, value uint32) uint32 {
	if is {
		return value
	}
	return 0
}

// regionsFromProto returns the regions of a request, and the ids by index of these and of
// other regions that the request names.
func regionsFromProto(p *pluginv1.Regions) ([]allocation.RegionState, []allocation.Region, error) {
	if err := checkRegions(p); err != nil {
		return nil, nil, err
	}
	n := len(p.GetId())
	ids := make([]allocation.Region, 0, n+len(p.GetOther()))
	for _, list := range [][]string{p.GetId(), p.GetOther()} {
		for i, id := range list {
			if id == "" || len(id) > maxRegionBytes {
				return nil, nil, wire.Malformed("regions.id", "region %d has an id of %d bytes", i, len(id))
			}
			ids = append(ids, allocation.Region(id))
		}
	}
	shards := make([]allocation.Shard, len(p.GetShard()))
	for i, s := range p.GetShard() {
		shards[i] = allocation.Shard(s)
	}
	regions := make([]allocation.RegionState, n)
	for i := range regions {
		condition, count := p.GetCondition()[i], p.GetShardCount()[i]
		regions[i] = allocation.RegionState{
			ID: ids[i], Zone: p.GetText()[p.GetZone()[i]], Version: p.GetText()[p.GetAppVersion()[i]],
			Roles: p.GetRoleSets()[p.GetRoles()[i]].GetRole(),
			// A condition that this version does not know forbids placing shards too.
			Leaving: condition&leaving != 0, Suspended: condition&suspended != 0 || condition&^known != 0,
			Unreachable: condition&unreachable != 0,
			Capacity:    p.GetCapacity()[i], Load: p.GetLoad()[i],
		}
		if count > 0 {
			regions[i].Shards = shards[:count:count]
			shards = shards[count:]
		}
	}
	return regions, ids, nil
}

// checkRegions checks the lengths of all columns and the indices into tables.
func checkRegions(p *pluginv1.Regions) error {
	n := len(p.GetId())
	if n > wire.MaxRegions || len(p.GetOther()) > wire.MaxNodes {
		return wire.Malformed("regions", "%d regions and %d others, the limit is %d", n, len(p.GetOther()), wire.MaxRegions)
	}
	if err := wire.SameLength("regions", n, len(p.GetZone()), len(p.GetAppVersion()), len(p.GetRoles()), len(p.GetCondition()),
		len(p.GetCapacity()), len(p.GetLoad()), len(p.GetShardCount())); err != nil {
		return err
	}
	for _, column := range [][]uint32{p.GetZone(), p.GetAppVersion()} {
		if err := wire.Within("regions.text", column, len(p.GetText())); err != nil {
			return err
		}
	}
	if err := wire.Within("regions.roles", p.GetRoles(), len(p.GetRoleSets())); err != nil {
		return err
	}
	for i, load := range p.GetLoad() {
		if math.IsNaN(load) || math.IsInf(load, 0) {
			return wire.Malformed("regions.load", "region %d has load %v", i, load)
		}
	}
	var shards uint64
	for _, count := range p.GetShardCount() {
		shards += uint64(count)
	}
	if shards != uint64(len(p.GetShard())) {
		return wire.Malformed("regions.shard", "%d shards, the counts say %d", len(p.GetShard()), shards)
	}
	return nil
}

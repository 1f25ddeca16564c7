// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/gossip"
)

// DefaultPreferNewestAbove is [Config.PreferNewestAbove] of [Default], and of strategies that are
// created without [PreferNewestAbove].
const DefaultPreferNewestAbove = 0.5

// Option sets what the strategies have in common that look at app-versions.
type Option func(*versions)

// PreferNewestAbove sets what part of the capacity the regions of the highest app-version must
// have, or exceed, to take all new shards; see [Config.PreferNewestAbove]. A part that is not from
// 0 to 1 is a fault of the configuration.
func PreferNewestAbove(part float64) Option { return func(v *versions) { v.above = part } }

// versions is the rule by which new shards are shared between regions of several app-versions.
type versions struct{ above float64 }

// newVersions returns the rule that the options set, or the fault of the part.
func newVersions(opts []Option) (versions, error) {
	v := versions{above: DefaultPreferNewestAbove}
	for _, set := range opts {
		set(&v)
	}
	if !(v.above >= 0 && v.above <= 1) {
		return v, fmt.Errorf("allocation: prefer-newest-above: %v is not from 0 to 1", v.above)
	}
	return v, nil
}

// split returns the eligible slots that new shards fill, and those of canaries: regions of the
// highest app-version while they have no more than the part of the capacity. A canary would draw
// all new shards to itself if it were filled: it is the newest, and the emptiest too. Instead each
// shard draws lots among all regions, of which canaries win their part.
func (v versions) split(regions []RegionState) (fill []*slot, canaries canaries) {
	slots := eligibleSlots(regions)
	if len(slots) == 0 {
		return slots, canaries
	}
	newest := slices.MaxFunc(slots, func(a, b *slot) int { return gossip.CompareVersions(a.region.Version, b.region.Version) }).region.Version
	var young, old []*slot
	weight, all := uint64(0), uint64(0)
	for _, s := range slots {
		all += s.weight
		if gossip.CompareVersions(s.region.Version, newest) < 0 {
			old = append(old, s)
			continue
		}
		young = append(young, s)
		weight += s.weight
	}
	if len(old) == 0 || float64(weight) > v.above*float64(all) {
		return young, canaries
	}
	canaries.lots, canaries.regions = newLots(slots), make(map[*slot]bool, len(young))
	canaries.reason = fmt.Sprintf("version %s has %d of %d regions, and gets its part of the new shards by lot", newest, len(young), len(slots))
	for _, s := range young {
		canaries.regions[s] = true
	}
	return old, canaries
}

// canaries are regions of an app-version that gets only its part of new shards.
type canaries struct {
	lots    lots // Of all eligible regions.
	regions map[*slot]bool
	reason  string
}

// take returns the placements of the shards that canaries win, the name of the strategy before
// their reasons, and the number of the others. A placement of no region stands for each of these.
func (c canaries) take(shards []Pending, strategy string) (placements []Placement, left int) {
	placements = make([]Placement, len(shards))
	for i, p := range shards {
		placements[i].Shard = p.Shard
		if s := c.winner(p.Shard); s != nil {
			placements[i].Region, placements[i].Reason = s.region.ID, strategy+": "+c.reason
		} else {
			left++
		}
	}
	return placements, left
}

// winner returns the canary that wins a shard, nil if none does.
func (c canaries) winner(shard Shard) *slot {
	if len(c.regions) == 0 {
		return nil
	}
	if s := c.lots.winner(shard); c.regions[s] {
		return s
	}
	return nil
}

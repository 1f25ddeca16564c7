// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
)

// A state and a delta are made of the same records ([records]). Each sort of record has a
// form with its table, a function that makes the form and one that reads it, side by side.

// perMember bounds the lists that hold several values for each member: ten, for as many
// members as a state can have. A member has a few roles and services, and marks
// unreachable only nodes that it monitors, which are nine.
const perMember = 10 * gossip.MaxMembers

// records are the parts that a state and a delta have in common.
type records struct {
	members    []*gossip.Member
	tombstones []gossip.Tombstone
	observers  []*gossip.ObserverRows
	config     *gossip.Voters    // Nil if absent.
	registers  *gossip.Registers // Nil if absent.
}

// rawRecords is the form of records.
type rawRecords struct {
	members    rawMembers
	tombstones rawTombstones
	observers  rawObservers
	config     *rawConfig
	registers  *rawRegisters
	causes     *rawCauses // Nil if no member or tombstone has a cause.
}

func (p *rawRecords) fields(c *wire.Codec) {
	wire.Message(c, 1, &p.members, (*rawMembers).fields)
	wire.Message(c, 2, &p.tombstones, (*rawTombstones).fields)
	wire.Message(c, 3, &p.observers, (*rawObservers).fields)
	wire.Optional(c, 4, &p.config, (*rawConfig).fields)
	wire.Optional(c, 5, &p.registers, (*rawRegisters).fields)
	wire.Optional(c, 6, &p.causes, (*rawCauses).fields)
}

func (t *table) records(r records) rawRecords {
	p := rawRecords{members: t.members(r.members), tombstones: t.tombstones(r.tombstones), observers: t.observers(r.observers)}
	if r.config != nil {
		p.config = &rawConfig{v: *r.config, voters: t.places(r.config.Voters), previous: t.places(r.config.Previous)}
	}
	if r.registers != nil {
		p.registers = &rawRegisters{r: *r.registers, yielded: t.yield(r.registers.Yielded)}
	}
	p.causes = t.causes(r)
	return p
}

func (t nodes) fromRecords(p *rawRecords) (r records, err error) {
	if r.members, err = t.fromMembers(&p.members); err != nil {
		return r, err
	}
	if r.tombstones, err = t.fromTombstones(&p.tombstones); err != nil {
		return r, err
	}
	if r.observers, err = t.fromObservers(&p.observers); err != nil {
		return r, err
	}
	if c := p.config; c != nil {
		r.config = &c.v
		if r.config.Voters, err = t.list(c.voters); err != nil {
			return r, err
		}
		if r.config.Previous, err = t.list(c.previous); err != nil {
			return r, err
		}
	}
	if g := p.registers; g != nil {
		r.registers = &g.r
		if r.registers.Yielded, err = t.fromYield(&g.yielded); err != nil {
			return r, err
		}
	}
	return r, t.fromCauses(p.causes, r)
}

// rawConfig is the form of the voters.
type rawConfig struct {
	v                gossip.Voters // Without the nodes.
	voters, previous []uint32
}

func (p *rawConfig) fields(c *wire.Codec) {
	wire.Uint(c, 1, &p.v.Gen, math.MaxUint64)
	wire.Uints(c, 2, &p.voters, math.MaxUint32, maxNodes)
	wire.Uints(c, 3, &p.previous, math.MaxUint32, maxNodes)
	wire.Fixed(c, 4, &p.v.By)
	wire.Fixeds(c, 6, &p.v.Data, maxNodes)
	wire.Fixeds(c, 7, &p.v.PreviousData, maxNodes)
	wire.Keep(c, &p.v.Unknown, gossip.MaxUnknownBytes)
}

// rawRegisters is the form of the registers.
type rawRegisters struct {
	r       gossip.Registers // Without the yield.
	yielded rawYield
}

func (p *rawRegisters) fields(c *wire.Codec) {
	wire.Uint(c, 1, &p.r.LastUpNumber, math.MaxUint64)
	wire.Int(c, 2, &p.r.PrunedBefore, math.MaxUint64)
	wire.Message(c, 3, &p.r.Downing, downingRegister)
	wire.Int(c, 4, &p.r.EpochBorn, math.MaxUint64)
	wire.Sparse(c, 5, &p.yielded, (*rawYield).fields)
	wire.Sparse(c, 6, &p.r.Unknown, more)
}

// more is the table of what a later release adds to a record: it stands behind the version, and is kept.
func more(m *gossip.Unknown, c *wire.Codec) {
	wire.Uint(c, 1, &m.Version, math.MaxUint64)
	wire.Keep(c, &m.Fields, gossip.MaxUnknownBytes)
}

func downingRegister(m *gossip.DowningRegister, c *wire.Codec) {
	wire.Uint(c, 1, &m.Gen, math.MaxUint64)
	wire.Text(c, 2, &m.Name, math.MaxInt)
	wire.Text(c, 3, &m.Version, math.MaxInt)
	wire.Text(c, 4, &m.Parameters, math.MaxInt)
	wire.Bool(c, 5, &m.Pure)
	wire.Bool(c, 6, &m.MajorityOnly)
	wire.Sparse(c, 7, &m.Previous, downingStrategy)
	wire.Keep(c, &m.Unknown, gossip.MaxUnknownBytes)
}

func downingStrategy(m *gossip.DowningStrategy, c *wire.Codec) {
	wire.Text(c, 1, &m.Name, math.MaxInt)
	wire.Text(c, 2, &m.Version, math.MaxInt)
	wire.Text(c, 3, &m.Parameters, math.MaxInt)
	wire.Bool(c, 4, &m.Pure)
	wire.Bool(c, 5, &m.MajorityOnly)
}

// rawMembers are the columns of members.
type rawMembers struct {
	node     []uint32
	status   []gossip.Status
	upNumber []gossip.UpNumber
	profile  []uint32
	profiles rawProfiles
	data     []gossip.DataID // Empty if no member keeps a record.

	// What some members say in fields of a later release, and which places in the list they have: a column of a later
	// release could not be kept, as nobody here knows which value is whose.
	moreOf []uint32
	more   []gossip.Unknown
}

func (p *rawMembers) fields(c *wire.Codec) {
	wire.Uints(c, 1, &p.node, math.MaxUint32, gossip.MaxMembers)
	wire.Uints(c, 2, &p.status, math.MaxUint8, gossip.MaxMembers)
	wire.Uints(c, 3, &p.upNumber, math.MaxUint64, gossip.MaxMembers)
	wire.Uints(c, 4, &p.profile, math.MaxUint32, gossip.MaxMembers)
	wire.Message(c, 5, &p.profiles, (*rawProfiles).fields)
	wire.Fixeds(c, 6, &p.data, maxNodes)
	wire.Uints(c, 7, &p.moreOf, math.MaxUint32, gossip.MaxMembers)
	wire.Messages(c, 8, &p.more, gossip.MaxMembers, more)
}

func (t *table) members(members []*gossip.Member) (p rawMembers) {
	n := len(members)
	p.node, p.status = make([]uint32, n), make([]gossip.Status, n)
	p.upNumber, p.profile = make([]gossip.UpNumber, n), make([]uint32, n)
	var profiles []*gossip.Member // One member for each profile.
	told := slices.ContainsFunc(members, func(m *gossip.Member) bool { return m.Loaded.Version > 0 })
	if slices.ContainsFunc(members, func(m *gossip.Member) bool { return m.Data != 0 }) {
		p.data = make([]gossip.DataID, n)
	}
	for i, m := range members {
		if p.data != nil {
			p.data[i] = m.Data
		}
		if !m.Unknown.IsZero() {
			p.moreOf, p.more = append(p.moreOf, uint32(i)), append(p.more, m.Unknown)
		}
		p.node[i], p.status[i], p.upNumber[i] = t.place(m.Node), m.Status, m.UpNumber
		place := slices.IndexFunc(profiles, func(o *gossip.Member) bool { return sameProfile(m, o) })
		if place < 0 {
			place = len(profiles)
			if len(profiles) < profilesCompared {
				profiles = append(profiles, m)
			} else {
				place = len(p.profiles.zone)
			}
			p.profiles.append(m, told)
		}
		p.profile[i] = uint32(place)
	}
	return p
}

// profilesCompared bounds how many profiles a member is compared with. In a
// cluster where members have more profiles than that, some are written twice.
const profilesCompared = 32

func sameProfile(a, b *gossip.Member) bool {
	return a.Settings == b.Settings && a.Protocol == b.Protocol && a.Zone == b.Zone && a.AppVersion == b.AppVersion &&
		slices.Equal(a.Roles, b.Roles) && slices.Equal(a.Services, b.Services) &&
		a.Loaded.Version == b.Loaded.Version && slices.Equal(a.Loaded.Strategies, b.Loaded.Strategies)
}

func (t nodes) fromMembers(p *rawMembers) ([]*gossip.Member, error) {
	n := len(p.node)
	if err := columns("members", n, gossip.MaxMembers, len(p.status), len(p.upNumber), len(p.profile)); err != nil {
		return nil, err
	}
	if d := len(p.data); d != 0 && d != n {
		return nil, wire.Malformed("%d data ids of %d members", d, n)
	}
	profiles, err := fromProfiles(&p.profiles, n)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, p.setMore(nil)
	}
	all := make([]gossip.Member, n)
	members := make([]*gossip.Member, n)
	for i, place := range p.node {
		profile := p.profile[i]
		if int64(profile) >= int64(len(profiles)) {
			return nil, wire.Malformed("profile %d of %d", profile, len(profiles))
		}
		all[i] = profiles[profile]
		if all[i].Node, err = t.at(place); err != nil {
			return nil, err
		}
		all[i].Status, all[i].UpNumber = p.status[i], p.upNumber[i]
		if len(p.data) > 0 {
			all[i].Data = p.data[i]
		}
		members[i] = &all[i]
	}
	return members, p.setMore(members)
}

// setMore sets what members say in fields of a later release.
func (p *rawMembers) setMore(members []*gossip.Member) error {
	if err := columns("unknown fields", len(p.more), len(members), len(p.moreOf)); err != nil {
		return err
	}
	for i, of := range p.moreOf {
		if int64(of) >= int64(len(members)) || i > 0 && of <= p.moreOf[i-1] || p.more[i].IsZero() {
			return wire.Malformed("unknown fields of member %d of %d, not in order or none", of, len(members))
		}
		members[of].Unknown = p.more[i]
	}
	return nil
}

// rawTombstones are the columns of tombstones.
type rawTombstones struct {
	node      []uint32
	last      []uint64
	removedAt []int64
}

func (p *rawTombstones) fields(c *wire.Codec) {
	wire.Uints(c, 1, &p.node, math.MaxUint32, gossip.MaxMembers)
	wire.Uints(c, 2, &p.last, math.MaxUint64, gossip.MaxMembers)
	wire.Ints(c, 3, &p.removedAt, gossip.MaxMembers)
}

func (t *table) tombstones(tombstones []gossip.Tombstone) (p rawTombstones) {
	for _, s := range tombstones {
		p.node = append(p.node, t.place(s.Node))
		p.last = append(p.last, s.Last)
		p.removedAt = append(p.removedAt, s.RemovedAt)
	}
	return p
}

func (t nodes) fromTombstones(p *rawTombstones) ([]gossip.Tombstone, error) {
	if err := columns("tombstones", len(p.node), gossip.MaxMembers, len(p.last), len(p.removedAt)); err != nil {
		return nil, err
	}
	var tombstones []gossip.Tombstone
	for i, place := range p.node {
		node, err := t.at(place)
		if err != nil {
			return nil, err
		}
		tombstones = append(tombstones, gossip.Tombstone{Node: node, Last: p.last[i], RemovedAt: p.removedAt[i]})
	}
	return tombstones, nil
}

// rawObservers are the columns of what observers say. The rows of all observers lie together, one observer after the
// other.
type rawObservers struct {
	observer   []uint32
	version    []uint64
	rowCount   []uint32
	subject    []uint32
	rowStatus  []gossip.ReachStatus
	rowVersion []uint64
}

func (p *rawObservers) fields(c *wire.Codec) {
	wire.Uints(c, 1, &p.observer, math.MaxUint32, gossip.MaxMembers)
	wire.Uints(c, 2, &p.version, math.MaxUint64, gossip.MaxMembers)
	wire.Uints(c, 3, &p.rowCount, math.MaxUint32, gossip.MaxMembers)
	wire.Uints(c, 4, &p.subject, math.MaxUint32, perMember)
	wire.Uints(c, 5, &p.rowStatus, math.MaxUint8, perMember)
	wire.Uints(c, 6, &p.rowVersion, math.MaxUint64, perMember)
}

func (t *table) observers(sets []*gossip.ObserverRows) (p rawObservers) {
	for _, set := range sets {
		p.observer = append(p.observer, t.place(set.Observer))
		p.version = append(p.version, set.Version)
		p.rowCount = append(p.rowCount, uint32(len(set.Rows)))
		for _, row := range set.Rows {
			p.subject = append(p.subject, t.place(row.Subject))
			p.rowStatus = append(p.rowStatus, row.Status)
			p.rowVersion = append(p.rowVersion, row.Version)
		}
	}
	return p
}

func (t nodes) fromObservers(p *rawObservers) ([]*gossip.ObserverRows, error) {
	if err := columns("observers", len(p.observer), gossip.MaxMembers, len(p.version), len(p.rowCount)); err != nil {
		return nil, err
	}
	if err := columns("rows", len(p.subject), perMember, len(p.rowStatus), len(p.rowVersion)); err != nil {
		return nil, err
	}
	var sets []*gossip.ObserverRows
	next := 0
	for i, place := range p.observer {
		observer, err := t.at(place)
		if err != nil {
			return nil, err
		}
		count := int64(p.rowCount[i])
		if count > int64(len(p.subject)-next) {
			return nil, wire.Malformed("%d rows where %d are left", count, len(p.subject)-next)
		}
		set := &gossip.ObserverRows{Observer: observer, Version: p.version[i]}
		for end := next + int(count); next < end; next++ {
			subject, err := t.at(p.subject[next])
			if err != nil {
				return nil, err
			}
			set.Rows = append(set.Rows, gossip.Row{Subject: subject, Status: p.rowStatus[next], Version: p.rowVersion[next]})
		}
		sets = append(sets, set)
	}
	if next < len(p.subject) {
		return nil, wire.Malformed("%d rows of no observer", len(p.subject)-next)
	}
	return sets, nil
}

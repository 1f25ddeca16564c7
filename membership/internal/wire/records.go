// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
	pb "github.com/quorate/quorate/membership/internal/proto/quorate/membership/v1"
)

// A state and a delta are made of the same records ([records]). Each sort of record has a
// function that encodes it and one that decodes it, side by side.

// records are the parts that a state and a delta have in common.
type records struct {
	members    []*gossip.Member
	tombstones []gossip.Tombstone
	observers  []*gossip.ObserverRows
	config     *gossip.Voters    // Nil if absent.
	registers  *gossip.Registers // Nil if absent.
}

func (t *table) records(r records) *pb.Records {
	p := &pb.Records{
		Members: t.members(r.members), Tombstones: t.tombstones(r.tombstones), Observers: t.observers(r.observers),
	}
	if r.config != nil {
		p.Config = &pb.Config{
			Gen: r.config.Gen, By: uint64(r.config.By), Voters: t.places(r.config.Voters), Previous: t.places(r.config.Previous),
			Data: toData(r.config.Data), PreviousData: toData(r.config.PreviousData),
		}
	}
	if g := r.registers; g != nil {
		p.Registers = &pb.Registers{
			LastUpNumber: uint64(g.LastUpNumber), PrunedBefore: g.PrunedBefore,
			Downing: toDowning(g.Downing), EpochBorn: g.EpochBorn, Yielded: t.yield(g.Yielded),
		}
	}
	p.Causes = t.causes(r)
	return p
}

func (t nodes) fromRecords(p *pb.Records) (r records, err error) {
	if r.members, err = t.fromMembers(p.GetMembers()); err != nil {
		return r, err
	}
	if r.tombstones, err = t.fromTombstones(p.GetTombstones()); err != nil {
		return r, err
	}
	if r.observers, err = t.fromObservers(p.GetObservers()); err != nil {
		return r, err
	}
	if c := p.GetConfig(); c != nil {
		r.config = &gossip.Voters{Gen: c.GetGen(), By: gossip.UID(c.GetBy())}
		if r.config.Voters, err = t.list(c.GetVoters()); err != nil {
			return r, err
		}
		if r.config.Previous, err = t.list(c.GetPrevious()); err != nil {
			return r, err
		}
		r.config.Data, r.config.PreviousData = fromData(c.GetData()), fromData(c.GetPreviousData())
	}
	if g := p.GetRegisters(); g != nil {
		yielded, err := t.fromYield(g.GetYielded())
		if err != nil {
			return r, err
		}
		r.registers = &gossip.Registers{
			LastUpNumber: gossip.UpNumber(g.GetLastUpNumber()), PrunedBefore: g.GetPrunedBefore(),
			Downing: fromDowning(g.GetDowning()), EpochBorn: g.GetEpochBorn(), Yielded: yielded,
		}
	}
	return r, t.fromCauses(p.GetCauses(), r)
}

// toData encodes data ids. The receiver checks their number when it builds the state.
func toData(ids []gossip.DataID) []uint64 {
	var data []uint64
	for _, id := range ids {
		data = append(data, uint64(id))
	}
	return data
}

func fromData(data []uint64) []gossip.DataID {
	var ids []gossip.DataID
	for _, id := range data {
		ids = append(ids, gossip.DataID(id))
	}
	return ids
}

func toDowning(r gossip.DowningRegister) *pb.Downing {
	p := &pb.Downing{
		Gen: r.Gen, Name: r.Name, Version: r.Version, Parameters: r.Parameters, Pure: r.Pure, MajorityOnly: r.MajorityOnly,
	}
	if b := r.Previous; b != (gossip.DowningStrategy{}) {
		p.Previous = &pb.DowningStrategy{
			Name: b.Name, Version: b.Version, Parameters: b.Parameters, Pure: b.Pure, MajorityOnly: b.MajorityOnly,
		}
	}
	return p
}

func fromDowning(p *pb.Downing) gossip.DowningRegister {
	b := p.GetPrevious()
	return gossip.DowningRegister{
		Gen: p.GetGen(),
		DowningStrategy: gossip.DowningStrategy{
			Name: p.GetName(), Version: p.GetVersion(), Parameters: p.GetParameters(),
			Pure: p.GetPure(), MajorityOnly: p.GetMajorityOnly(),
		},
		Previous: gossip.DowningStrategy{
			Name: b.GetName(), Version: b.GetVersion(), Parameters: b.GetParameters(),
			Pure: b.GetPure(), MajorityOnly: b.GetMajorityOnly(),
		},
	}
}

func (t *table) members(members []*gossip.Member) *pb.Members {
	p := &pb.Members{Profiles: &pb.Profiles{}}
	n := len(members)
	p.Node, p.Status = make([]uint32, n), make([]uint32, n)
	p.UpNumber, p.Profile = make([]uint64, n), make([]uint32, n)
	var profiles []*gossip.Member // One member for each profile.
	told := slices.ContainsFunc(members, func(m *gossip.Member) bool { return m.Loaded.Version > 0 })
	if slices.ContainsFunc(members, func(m *gossip.Member) bool { return m.Data != 0 }) {
		p.Data = make([]uint64, n)
	}
	for i, m := range members {
		if p.Data != nil {
			p.Data[i] = uint64(m.Data)
		}
		p.Node[i], p.Status[i], p.UpNumber[i] = t.place(m.Node), uint32(m.Status), uint64(m.UpNumber)
		place := slices.IndexFunc(profiles, func(o *gossip.Member) bool { return sameProfile(m, o) })
		if place < 0 {
			place = len(profiles)
			if len(profiles) < profilesCompared {
				profiles = append(profiles, m)
			} else {
				place = len(p.Profiles.GetZone())
			}
			appendProfile(p.Profiles, m)
			if told {
				appendLoaded(p.Profiles, m.Loaded)
			}
		}
		p.Profile[i] = uint32(place)
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

func appendProfile(p *pb.Profiles, m *gossip.Member) {
	p.Zone = append(p.Zone, m.Zone)
	p.AppVersion = append(p.AppVersion, m.AppVersion)
	p.ProtocolMin = append(p.ProtocolMin, uint32(m.Protocol.Min))
	p.ProtocolMax = append(p.ProtocolMax, uint32(m.Protocol.Max))
	p.Settings = append(p.Settings, m.Settings)
	p.RoleCount = append(p.RoleCount, uint32(len(m.Roles)))
	p.ServiceCount = append(p.ServiceCount, uint32(len(m.Services)))
	p.Roles = append(p.Roles, m.Roles...)
	for _, s := range m.Services {
		p.Services = append(p.Services, uint32(s))
	}
}

func appendLoaded(p *pb.Profiles, l gossip.Loaded) {
	p.LoadedVersion = append(p.LoadedVersion, l.Version)
	p.LoadedCount = append(p.LoadedCount, uint32(len(l.Strategies)))
	for _, id := range l.Strategies {
		p.Loaded = append(p.Loaded, uint64(id))
	}
}

// fromLoaded sets which strategies the profiles have loaded.
func fromLoaded(p *pb.Profiles, profiles []gossip.Member) error {
	if n := len(p.GetLoadedVersion()); n != 0 && n != len(profiles) || n != len(p.GetLoadedCount()) {
		return wire.Malformed("%d versions and %d counts of what %d profiles have loaded", n, len(p.GetLoadedCount()), len(profiles))
	}
	rest := p.GetLoaded()
	for i, version := range p.GetLoadedVersion() {
		var mine []uint64
		var err error
		if mine, rest, err = split("loaded strategies", rest, p.GetLoadedCount()[i]); err != nil {
			return err
		}
		profiles[i].Loaded.Version = version
		for _, id := range mine {
			profiles[i].Loaded.Strategies = append(profiles[i].Loaded.Strategies, gossip.StrategyID(id))
		}
	}
	if len(rest) > 0 {
		return wire.Malformed("%d loaded strategies of no profile", len(rest))
	}
	return nil
}

func (t nodes) fromMembers(p *pb.Members) ([]*gossip.Member, error) {
	n := len(p.GetNode())
	if err := columns("members", n, gossip.MaxMembers, len(p.GetStatus()), len(p.GetUpNumber()), len(p.GetProfile())); err != nil {
		return nil, err
	}
	if d := len(p.GetData()); d != 0 && d != n {
		return nil, wire.Malformed("%d data ids of %d members", d, n)
	}
	profiles, err := fromProfiles(p.GetProfiles(), n)
	if err != nil || n == 0 {
		return nil, err
	}
	all := make([]gossip.Member, n)
	members := make([]*gossip.Member, n)
	for i, place := range p.GetNode() {
		profile, status := p.GetProfile()[i], p.GetStatus()[i]
		if int64(profile) >= int64(len(profiles)) {
			return nil, wire.Malformed("profile %d of %d", profile, len(profiles))
		}
		if status > 255 {
			return nil, wire.Malformed("status %d", status)
		}
		all[i] = profiles[profile]
		if all[i].Node, err = t.at(place); err != nil {
			return nil, err
		}
		all[i].Status, all[i].UpNumber = gossip.Status(status), gossip.UpNumber(p.GetUpNumber()[i])
		if len(p.GetData()) > 0 {
			all[i].Data = gossip.DataID(p.GetData()[i])
		}
		members[i] = &all[i]
	}
	return members, nil
}

func fromProfiles(p *pb.Profiles, limit int) ([]gossip.Member, error) {
	n := len(p.GetZone())
	err := columns("profiles", n, limit, len(p.GetAppVersion()), len(p.GetProtocolMin()), len(p.GetProtocolMax()),
		len(p.GetSettings()), len(p.GetRoleCount()), len(p.GetServiceCount()))
	if err != nil {
		return nil, err
	}
	profiles := make([]gossip.Member, n)
	roles, services := p.GetRoles(), p.GetServices()
	for i := range profiles {
		m := &profiles[i]
		least, most := p.GetProtocolMin()[i], p.GetProtocolMax()[i]
		if least > 65535 || most > 65535 {
			return nil, wire.Malformed("protocol range %d to %d", least, most)
		}
		m.Zone, m.AppVersion, m.Settings = p.GetZone()[i], p.GetAppVersion()[i], p.GetSettings()[i]
		m.Protocol = gossip.ProtocolRange{Min: uint16(least), Max: uint16(most)}
		if m.Roles, roles, err = split("roles", roles, p.GetRoleCount()[i]); err != nil {
			return nil, err
		}
		var mine []uint32
		if mine, services, err = split("services", services, p.GetServiceCount()[i]); err != nil {
			return nil, err
		}
		for _, s := range mine {
			if s > 65535 {
				return nil, wire.Malformed("service %d", s)
			}
			m.Services = append(m.Services, uint16(s))
		}
		if len(m.Roles) == 0 {
			m.Roles = nil
		}
	}
	if len(roles)+len(services) > 0 {
		return nil, wire.Malformed("%d roles and %d services of no profile", len(roles), len(services))
	}
	return profiles, fromLoaded(p, profiles)
}

func (t *table) tombstones(tombstones []gossip.Tombstone) *pb.Tombstones {
	p := &pb.Tombstones{}
	for _, s := range tombstones {
		p.Node = append(p.Node, t.place(s.Node))
		p.Last = append(p.Last, s.Last)
		p.RemovedAt = append(p.RemovedAt, s.RemovedAt)
	}
	return p
}

func (t nodes) fromTombstones(p *pb.Tombstones) ([]gossip.Tombstone, error) {
	n := len(p.GetNode())
	if err := columns("tombstones", n, gossip.MaxMembers, len(p.GetLast()), len(p.GetRemovedAt())); err != nil {
		return nil, err
	}
	var tombstones []gossip.Tombstone
	for i, place := range p.GetNode() {
		node, err := t.at(place)
		if err != nil {
			return nil, err
		}
		tombstones = append(tombstones, gossip.Tombstone{Node: node, Last: p.GetLast()[i], RemovedAt: p.GetRemovedAt()[i]})
	}
	return tombstones, nil
}

func (t *table) observers(sets []*gossip.ObserverRows) *pb.Observers {
	p := &pb.Observers{}
	for _, set := range sets {
		p.Observer = append(p.Observer, t.place(set.Observer))
		p.Version = append(p.Version, set.Version)
		p.RowCount = append(p.RowCount, uint32(len(set.Rows)))
		for _, row := range set.Rows {
			p.Subject = append(p.Subject, t.place(row.Subject))
			p.RowStatus = append(p.RowStatus, uint32(row.Status))
			p.RowVersion = append(p.RowVersion, row.Version)
		}
	}
	return p
}

func (t nodes) fromObservers(p *pb.Observers) ([]*gossip.ObserverRows, error) {
	n := len(p.GetObserver())
	if err := columns("observers", n, gossip.MaxMembers, len(p.GetVersion()), len(p.GetRowCount())); err != nil {
		return nil, err
	}
	if err := columns("rows", len(p.GetSubject()), SizeMax, len(p.GetRowStatus()), len(p.GetRowVersion())); err != nil {
		return nil, err
	}
	var sets []*gossip.ObserverRows
	next := 0
	for i, place := range p.GetObserver() {
		observer, err := t.at(place)
		if err != nil {
			return nil, err
		}
		count := int64(p.GetRowCount()[i])
		if count > int64(len(p.GetSubject())-next) {
			return nil, wire.Malformed("%d rows where %d are left", count, len(p.GetSubject())-next)
		}
		set := &gossip.ObserverRows{Observer: observer, Version: p.GetVersion()[i]}
		for end := next + int(count); next < end; next++ {
			subject, err := t.at(p.GetSubject()[next])
			if err != nil {
				return nil, err
			}
			status := p.GetRowStatus()[next]
			if status > 255 {
				return nil, wire.Malformed("row of status %d", status)
			}
			set.Rows = append(set.Rows, gossip.Row{
				Subject: subject, Status: gossip.ReachStatus(status), Version: p.GetRowVersion()[next],
			})
		}
		sets = append(sets, set)
	}
	if next < len(p.GetSubject()) {
		return nil, wire.Malformed("%d rows of no observer", len(p.GetSubject())-next)
	}
	return sets, nil
}

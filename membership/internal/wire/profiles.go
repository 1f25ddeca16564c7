// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
)

// rawProfiles are the columns of profiles: what many members of a cluster have in common. The roles, the services and
// the strategies of all profiles lie together, one profile after the other.
type rawProfiles struct {
	zone, appVersion         []string
	protocolMin, protocolMax []uint16
	settings                 []uint64
	roleCount, serviceCount  []uint32
	roles                    []string
	services                 []uint16

	// Empty if no member has said what it has loaded.
	loadedVersion []uint64
	loadedCount   []uint32
	loaded        []gossip.StrategyID
}

func (p *rawProfiles) fields(c *wire.Codec) {
	const most = gossip.MaxMembers
	wire.Texts(c, 1, &p.zone, math.MaxInt, most)
	wire.Texts(c, 2, &p.appVersion, math.MaxInt, most)
	wire.Uints(c, 3, &p.protocolMin, math.MaxUint16, most)
	wire.Uints(c, 4, &p.protocolMax, math.MaxUint16, most)
	wire.Fixeds(c, 5, &p.settings, most)
	wire.Uints(c, 6, &p.roleCount, math.MaxUint32, most)
	wire.Uints(c, 7, &p.serviceCount, math.MaxUint32, most)
	wire.Texts(c, 8, &p.roles, math.MaxInt, perMember)
	wire.Uints(c, 9, &p.services, math.MaxUint16, perMember)
	wire.Uints(c, 10, &p.loadedVersion, math.MaxUint64, most)
	wire.Uints(c, 11, &p.loadedCount, math.MaxUint32, most)
	wire.Fixeds(c, 12, &p.loaded, perMember)
}

// append adds the profile of a member, with what that has loaded if the members have told it.
func (p *rawProfiles) append(m *gossip.Member, told bool) {
	p.zone, p.appVersion = append(p.zone, m.Zone), append(p.appVersion, m.AppVersion)
	p.protocolMin, p.protocolMax = append(p.protocolMin, m.Protocol.Min), append(p.protocolMax, m.Protocol.Max)
	p.settings = append(p.settings, m.Settings)
	p.roleCount, p.roles = append(p.roleCount, uint32(len(m.Roles))), append(p.roles, m.Roles...)
	p.serviceCount, p.services = append(p.serviceCount, uint32(len(m.Services))), append(p.services, m.Services...)
	if told {
		p.loadedVersion = append(p.loadedVersion, m.Loaded.Version)
		p.loadedCount = append(p.loadedCount, uint32(len(m.Loaded.Strategies)))
		p.loaded = append(p.loaded, m.Loaded.Strategies...)
	}
}

func fromProfiles(p *rawProfiles, limit int) ([]gossip.Member, error) {
	n := len(p.zone)
	err := columns("profiles", n, limit, len(p.appVersion), len(p.protocolMin), len(p.protocolMax),
		len(p.settings), len(p.roleCount), len(p.serviceCount))
	if err != nil {
		return nil, err
	}
	profiles := make([]gossip.Member, n)
	roles, services := p.roles, p.services
	for i := range profiles {
		m := &profiles[i]
		m.Zone, m.AppVersion, m.Settings = p.zone[i], p.appVersion[i], p.settings[i]
		m.Protocol = gossip.ProtocolRange{Min: p.protocolMin[i], Max: p.protocolMax[i]}
		if m.Roles, roles, err = splitSome("roles", roles, p.roleCount[i]); err != nil {
			return nil, err
		}
		if m.Services, services, err = splitSome("services", services, p.serviceCount[i]); err != nil {
			return nil, err
		}
	}
	if len(roles)+len(services) > 0 {
		return nil, wire.Malformed("%d roles and %d services of no profile", len(roles), len(services))
	}
	return profiles, fromLoaded(p, profiles)
}

// fromLoaded sets which strategies the profiles have loaded.
func fromLoaded(p *rawProfiles, profiles []gossip.Member) (err error) {
	if n := len(p.loadedVersion); n != 0 && n != len(profiles) || n != len(p.loadedCount) {
		return wire.Malformed("%d versions and %d counts of what %d profiles have loaded", n, len(p.loadedCount), len(profiles))
	}
	rest := p.loaded
	for i, version := range p.loadedVersion {
		of := &profiles[i].Loaded
		of.Version = version
		if of.Strategies, rest, err = splitSome("loaded strategies", rest, p.loadedCount[i]); err != nil {
			return err
		}
	}
	if len(rest) > 0 {
		return wire.Malformed("%d loaded strategies of no profile", len(rest))
	}
	return nil
}

// splitSome is [split] with nil for no values.
func splitSome[T any](what string, column []T, count uint32) (first, rest []T, err error) {
	if first, rest, err = split(what, column, count); len(first) == 0 {
		first = nil
	}
	return first, rest, err
}

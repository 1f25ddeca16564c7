// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// States from and to plain values. FromParts builds a state from values that may come
// from an attacker, after validation has checked each list by itself and against the
// members; ValidateAt checks times and counts against a clock.

// Raw is the whole content of a state as plain values, for encoders, decoders and
// tools. The order of the lists does not matter.
type Raw struct {
	Cluster      ClusterID
	Members      []*Member
	Tombstones   []Tombstone
	Clock        []Dot
	Seen         []NodeID
	Observers    []*ObserverRows
	Config       Voters
	LastUpNumber UpNumber
	PrunedBefore int64 // Unix milliseconds, 0: nothing pruned.
	Downing      DowningRegister
	EpochBorn    int64 // Unix milliseconds; 0: the birth of the cluster.
	Yielded      Yield // Zero: the cluster goes on.
	Unknown      Unknown
}

// FromParts returns the state with the given parts, which may come from an untrusted
// source. It checks everything that a [State] promises and the limits of this package,
// and returns an [InvalidError] for the first fault. It allocates no more than in
// proportion to the parts. The parts must not be modified afterwards.
//
// It does not check whether times are plausible, which needs a clock; see
// [Raw.ValidateAt].
func FromParts(p Raw) (*State, error) {
	p = p.sorted()
	v := validation{parts: &p}
	if err := v.check(); err != nil {
		return nil, err
	}
	clock, err := ClockOf(p.Clock)
	if err != nil {
		return nil, err
	}
	s := &State{clock: clock}
	s.cluster.value, s.members, s.rows = p.Cluster, p.Members, p.Observers
	s.lastUp.value, s.pruned.value, s.epochs.value, s.yielded.value = p.LastUpNumber, millis(p.PrunedBefore), millis(p.EpochBorn), p.Yielded
	s.config, s.downing, s.unknown.value = s.config.write(&p.Config), s.downing.write(&p.Downing), p.Unknown
	for i := range p.Tombstones {
		s.tombs = append(s.tombs, &p.Tombstones[i])
	}
	s.prune()
	s.seen = bitsOf(p.Seen, s.members)
	s.rebase()
	return s, nil
}

// MaxClockSkew is how far ahead of a node's own wall clock a time from another node
// may be. It is long, since a node whose clock is ahead by more is refused whatever it
// sends, and short against the time for which tombstones could be kept.
const MaxClockSkew = 30 * 24 * time.Hour

// latestTime bounds times where no clock is at hand: the start of the year 2200 in
// unix milliseconds.
const latestTime = 7_258_118_400_000

// LatestBirth is the last moment at which a cluster or its epochs can be born, in unix
// milliseconds.
const LatestBirth = latestTime

// isBirth reports whether a cluster, or its epochs, can be born at a moment.
func isBirth(born int64) bool { return born >= 0 && born <= LatestBirth }

// The bound of every count of a state grows with time: countFree at any time, and
// countRate for each millisecond since the birth of the cluster. No cluster counts a
// million edits a second for long. So a forged count cannot exhaust the numbers that
// others need: a count that is refused now is accepted some time later.
const (
	countFree = 1 << 40
	countRate = 1 << 10
)

// maxCountAt returns the highest count that a state of a cluster with the given birth
// can have at a time.
func maxCountAt(born int64, now time.Time) uint64 {
	age := max(now.UnixMilli(), born) - born
	return min(countFree+countRate*uint64(age), maxCount) // The age is not negative.
}

// ValidateAt refuses values that cannot be true at a time: tombstones and a
// PrunedBefore further ahead than [MaxClockSkew], and counts above those that a
// cluster of this age can have reached. A tombstone from the far future would never be
// forgotten; a PrunedBefore from there would forget all tombstones; and a count near
// its end would leave no room to count on. A clock before the birth of the cluster is
// wrong and checks no times.
//
// The bound depends on the time alone, not on the state of the caller: otherwise a
// node that has accepted a high count and one that has not could not communicate any
// more.
func (p Raw) ValidateAt(now time.Time) error {
	if now.UnixMilli() >= p.Cluster.Born {
		if err := p.validateTimes(now.Add(MaxClockSkew).UnixMilli()); err != nil {
			return err
		}
	}
	limit := maxCountAt(p.Cluster.Born, now)
	above := func(node NodeID, what string, count uint64) error {
		if count > limit {
			return invalid(FaultCounter, node, "%s %d, at most %d by now", what, count, limit)
		}
		return nil
	}
	err := cmp.Or(
		above(NodeID{}, "last up-number", uint64(p.LastUpNumber)),
		above(NodeID{}, "voters of generation", p.Config.Gen),
		above(NodeID{}, "downing strategy of generation", p.Downing.Gen),
		above(NodeID{}, "unknown registers of version", p.Unknown.Version),
	)
	for i := 0; err == nil && i < len(p.Members); i++ {
		m := p.Members[i]
		err = cmp.Or(above(m.Node, "up-number", uint64(m.UpNumber)), above(m.Node, "loaded strategies of version", m.Loaded.Version),
			above(m.Node, "unknown fields of version", m.Unknown.Version))
	}
	for i := 0; err == nil && i < len(p.Clock); i++ {
		err = above(p.Clock[i].Node, "clock entry", p.Clock[i].Count)
	}
	for i := 0; err == nil && i < len(p.Tombstones); i++ {
		err = above(p.Tombstones[i].Node, "last clock entry", p.Tombstones[i].Last)
	}
	for i := 0; err == nil && i < len(p.Observers); i++ {
		err = above(p.Observers[i].Observer, "rows of version", p.Observers[i].Version)
	}
	return err
}

func (p Raw) validateTimes(latest int64) error {
	if p.PrunedBefore > latest {
		return invalid(FaultTime, NodeID{}, "pruned before %d", p.PrunedBefore)
	}
	for _, t := range p.Tombstones {
		if t.RemovedAt > latest {
			return invalid(FaultTime, t.Node, "removed at %d", t.RemovedAt)
		}
	}
	return nil
}

// sorted returns p with sorted lists. Lists that are sorted already are not copied.
func (p Raw) sorted() Raw {
	p.Members = ordered(p.Members, func(a, b *Member) int {
		if a == nil || b == nil {
			return compareNil(a == nil, b == nil)
		}
		return compareNodes(&a.Node, &b.Node)
	})
	p.Tombstones = ordered(p.Tombstones, func(a, b Tombstone) int { return compareNodes(&a.Node, &b.Node) })
	p.Seen = ordered(p.Seen, NodeID.Compare)
	p.Observers = ordered(p.Observers, func(a, b *ObserverRows) int {
		if a == nil || b == nil {
			return compareNil(a == nil, b == nil)
		}
		return compareNodes(&a.Observer, &b.Observer)
	})
	return p
}

func ordered[T any](list []T, compare func(a, b T) int) []T {
	if slices.IsSortedFunc(list, compare) {
		return list
	}
	c := slices.Clone(list)
	slices.SortStableFunc(c, compare)
	return c
}

// compareNil orders nil first, where the validation finds it.
func compareNil(a, b bool) int { return compareBools(b, a) }

// validation checks parts whose lists are sorted. Partial parts, those of a delta, may
// refer to members that only the receiver knows.
type validation struct {
	parts   *Raw
	partial bool
}

func (v validation) check() error {
	p := v.parts
	if n := max(len(p.Members), len(p.Tombstones), len(p.Observers)); n > MaxMembers {
		return invalid(FaultLimit, NodeID{}, "%d members, tombstones or observers, at most %d", n, MaxMembers)
	}
	for _, born := range []int64{p.Cluster.Born, p.EpochBorn} {
		if !isBirth(born) {
			return invalid(FaultTime, NodeID{}, "epochs or a cluster born at %d", born)
		}
	}
	if err := cmp.Or(p.Yielded.Validate(), p.Unknown.validate(NodeID{})); err != nil {
		return err
	}
	if p.LastUpNumber > maxCount {
		return invalid(FaultUpNumber, NodeID{}, "last up-number %d", p.LastUpNumber)
	}
	for _, check := range []func() error{
		v.members, v.upNumbers, v.tombstones, v.seenAndClock, v.observers, v.config, v.downing,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (v validation) members() error {
	for i, m := range v.parts.Members {
		if m == nil {
			return invalid(FaultUnknown, NodeID{}, "member that is nil")
		}
		if i > 0 && compareNodes(&v.parts.Members[i-1].Node, &m.Node) >= 0 {
			return invalid(FaultDuplicate, m.Node, "member twice or out of order")
		}
		if err := m.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Validate reports whether m can be a member of a state. The errors unwrap to
// [ErrInvalid].
func (m *Member) Validate() error {
	if err := m.Node.Validate(); err != nil {
		return err
	}
	switch {
	case !m.Status.isLive():
		return invalid(FaultStatus, m.Node, "status %d", m.Status)
	case m.UpNumber > maxCount,
		m.UpNumber == 0 && m.Status.IsUp(),
		m.UpNumber > 0 && m.Status < Up:
		return invalid(FaultUpNumber, m.Node, "up-number %d while %v", m.UpNumber, m.Status)
	case len(m.Roles) > MaxRoles:
		return invalid(FaultLimit, m.Node, "%d roles, at most %d", len(m.Roles), MaxRoles)
	case len(m.Services) > MaxServices:
		return invalid(FaultLimit, m.Node, "%d services, at most %d", len(m.Services), MaxServices)
	case !strictlySorted(m.Roles, strings.Compare):
		return invalid(FaultDuplicate, m.Node, "roles not sorted or twice")
	case !strictlySorted(m.Services, cmp.Compare[uint16]):
		return invalid(FaultDuplicate, m.Node, "services not sorted or twice")
	case m.Status != Down && !m.Downed.IsZero():
		return invalid(FaultStatus, m.Node, "declared down by %v while %v", m.Downed.By, m.Status)
	case m.Protocol.Min > m.Protocol.Max:
		return invalid(FaultCounter, m.Node, "protocol range %d to %d", m.Protocol.Min, m.Protocol.Max)
	}
	if err := cmp.Or(m.Loaded.validate(m.Node), m.Downed.Validate(), m.Unknown.validate(m.Node)); err != nil {
		return err
	}
	for _, role := range m.Roles {
		if role == "" {
			return invalid(FaultText, m.Node, "empty role")
		}
		if err := validateText(m.Node, "role", role, MaxRoleBytes); err != nil {
			return err
		}
	}
	if err := validateText(m.Node, "zone", m.Zone, MaxRoleBytes); err != nil {
		return err
	}
	return validateText(m.Node, "app version", m.AppVersion, MaxRoleBytes)
}

func validateText(node NodeID, what, text string, limit int) error {
	switch {
	case len(text) > limit:
		return invalid(FaultLimit, node, "%s of %d bytes, at most %d", what, len(text), limit)
	case !IsName(text):
		return invalid(FaultText, node, "%s %q is not printable UTF-8", what, text)
	}
	return nil
}

// upNumbers checks that no up-number is above the last one. Two members may have equal
// up-numbers: see [Age].
func (v validation) upNumbers() error {
	for _, m := range v.parts.Members {
		if m.UpNumber > v.parts.LastUpNumber && !v.partial {
			return invalid(FaultUpNumber, m.Node, "up-number %d above the last one, %d", m.UpNumber, v.parts.LastUpNumber)
		}
	}
	return nil
}

func (v validation) tombstones() error {
	p := v.parts
	if p.PrunedBefore < 0 || p.PrunedBefore > latestTime {
		return invalid(FaultTime, NodeID{}, "pruned before %d", p.PrunedBefore)
	}
	for i, t := range p.Tombstones {
		if i > 0 && compareNodes(&p.Tombstones[i-1].Node, &t.Node) >= 0 {
			return invalid(FaultDuplicate, t.Node, "tombstone twice or out of order")
		}
		if err := cmp.Or(t.Node.Validate(), t.Downed.Validate()); err != nil {
			return err
		}
		switch {
		case t.Last > maxCount:
			return invalid(FaultCounter, t.Node, "last clock entry %d", t.Last)
		case t.RemovedAt < 0 || t.RemovedAt > latestTime:
			return invalid(FaultTime, t.Node, "removed at %d", t.RemovedAt)
		case v.isMember(t.Node):
			return invalid(FaultDuplicate, t.Node, "member and tombstone at once")
		}
	}
	return nil
}

func (v validation) isMember(id NodeID) bool {
	_, ok := findMember(v.parts.Members, id)
	return ok
}

// checkKnown refuses a node that is not a member; in partial parts, a node id that is
// not valid.
func (v validation) checkKnown(id NodeID, what string) error {
	if v.partial {
		return id.Validate()
	}
	if !v.isMember(id) {
		return invalid(FaultUnknown, id, "%s that is not a member", what)
	}
	return nil
}

func (v validation) seenAndClock() error {
	p := v.parts
	if n := max(len(p.Seen), len(p.Clock)); n > MaxMembers {
		return invalid(FaultLimit, NodeID{}, "%d in the seen set or clock, at most %d", n, MaxMembers)
	}
	for i, id := range p.Seen {
		if i > 0 && compareNodes(&p.Seen[i-1], &id) >= 0 {
			return invalid(FaultDuplicate, id, "in the seen set twice or out of order")
		}
		if err := v.checkKnown(id, "seen by a node"); err != nil {
			return err
		}
	}
	for _, e := range p.Clock {
		if err := v.checkKnown(e.Node, "clock entry of a node"); err != nil {
			return err
		}
	}
	return nil
}

func (v validation) observers() error {
	for i, set := range v.parts.Observers {
		if set == nil {
			return invalid(FaultUnknown, NodeID{}, "rows that are nil")
		}
		if i > 0 && compareNodes(&v.parts.Observers[i-1].Observer, &set.Observer) >= 0 {
			return invalid(FaultDuplicate, set.Observer, "observer twice or out of order")
		}
		if err := v.checkKnown(set.Observer, "observer"); err != nil {
			return err
		}
		if set.Version == 0 || set.Version > maxCount {
			return invalid(FaultCounter, set.Observer, "rows of version %d", set.Version)
		}
		if err := v.rows(set); err != nil {
			return err
		}
	}
	return nil
}

func (v validation) rows(set *ObserverRows) error {
	if len(set.Rows) > MaxMembers {
		return invalid(FaultLimit, set.Observer, "%d rows, at most %d", len(set.Rows), MaxMembers)
	}
	for i, row := range set.Rows {
		switch {
		case row.Subject == set.Observer:
			return invalid(FaultReach, row.Subject, "row about its own observer")
		case !row.Status.isValid():
			return invalid(FaultReach, row.Subject, "row of status %d", row.Status)
		case row.Version == 0 || row.Version > set.Version:
			return invalid(FaultCounter, row.Subject, "row of version %d in rows of version %d", row.Version, set.Version)
		case i > 0 && compareNodes(&set.Rows[i-1].Subject, &row.Subject) >= 0:
			return invalid(FaultDuplicate, row.Subject, "rows twice or out of order")
		}
		if err := v.checkKnown(row.Subject, "subject"); err != nil {
			return err
		}
	}
	return nil
}

func (v validation) config() error {
	c := &v.parts.Config
	if c.Gen > maxCount || c.Gen == 0 && (len(c.Voters)+len(c.Previous)+len(c.Unknown) > 0 || c.By != 0) {
		return invalid(FaultCounter, NodeID{}, "config of generation %d", c.Gen)
	}
	for _, set := range c.sets() {
		voters := set.voters
		if len(voters) > MaxMembers {
			return invalid(FaultLimit, NodeID{}, "%d voters, at most %d", len(voters), MaxMembers)
		}
		if len(set.data) != 0 && len(set.data) != len(voters) {
			return invalid(FaultLimit, NodeID{}, "%d data ids of %d voters", len(set.data), len(voters))
		}
		if !strictlySorted(voters, NodeID.Compare) {
			return invalid(FaultDuplicate, NodeID{}, "voters not sorted or twice")
		}
		for _, id := range voters {
			if err := id.Validate(); err != nil {
				return err
			}
		}
	}
	return validateUnknown(NodeID{}, c.Unknown)
}

// maxParameterBytes bounds the text of a downing strategy's settings.
const maxParameterBytes = 4096

func (v validation) downing() error {
	d := v.parts.Downing
	if d.Gen > maxCount || d.Gen == 0 && d != (DowningRegister{}) {
		return invalid(FaultCounter, NodeID{}, "downing strategy of generation %d", d.Gen)
	}
	if err := d.Validate(); err != nil {
		return err
	}
	return cmp.Or(d.Previous.Validate(), validateUnknown(NodeID{}, d.Unknown))
}

// Validate reports whether s can be in a state. The errors unwrap to
// [ErrInvalid].
func (s DowningStrategy) Validate() error {
	if len(s.Parameters) > maxParameterBytes || !utf8.ValidString(s.Parameters) {
		return invalid(FaultLimit, NodeID{}, "parameters of the downing strategy: %d bytes", len(s.Parameters))
	}
	if err := validateText(NodeID{}, "downing strategy", s.Name, MaxRoleBytes); err != nil {
		return err
	}
	return validateText(NodeID{}, "downing strategy version", s.Version, MaxRoleBytes)
}

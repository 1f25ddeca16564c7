// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// Settings, and what differs among those of two nodes, are columns.

// rawSettings are the columns of settings.
type rawSettings struct {
	key, value []string
	class      []protocol.SettingClass
}

func (p *rawSettings) fields(c *wire.Codec) {
	wire.Texts(c, 1, &p.key, protocol.MaxKeyBytes, protocol.MaxSettings)
	wire.Texts(c, 2, &p.value, protocol.MaxTextBytes, protocol.MaxSettings)
	wire.Uints(c, 3, &p.class, uint64(protocol.ShouldEqual), protocol.MaxSettings)
}

// settings is a row with settings.
func settings(c *wire.Codec, n wire.Number, all *[]protocol.Setting) {
	if !c.At(n) {
		return
	}
	var p rawSettings
	if !c.Reading() {
		for _, s := range *all {
			p.key, p.value, p.class = append(p.key, s.Key), append(p.value, s.Value), append(p.class, s.Class)
		}
	}
	if wire.Message(c, n, &p, (*rawSettings).fields) {
		var err error
		*all, err = fromSettings(&p)
		c.Fail(err)
	}
}

func fromSettings(p *rawSettings) ([]protocol.Setting, error) {
	if err := columns("settings", len(p.key), protocol.MaxSettings, len(p.value), len(p.class)); err != nil {
		return nil, err
	}
	var settings []protocol.Setting
	for i, key := range p.key {
		class := p.class[i]
		if class != protocol.MustEqual && class != protocol.ShouldEqual {
			return nil, wire.Malformed("setting %q of class %d", key, class)
		}
		if i > 0 && settings[i-1].Key >= key {
			return nil, wire.Malformed("settings not sorted or twice")
		}
		settings = append(settings, protocol.Setting{Key: key, Value: p.value[i], Class: class})
	}
	return settings, nil
}

// rawDifferences are the columns of differences.
type rawDifferences struct{ key, member, joiner []string }

func (p *rawDifferences) fields(c *wire.Codec) {
	wire.Texts(c, 1, &p.key, protocol.MaxKeyBytes, protocol.MaxSettings)
	wire.Texts(c, 2, &p.member, protocol.MaxTextBytes, protocol.MaxSettings)
	wire.Texts(c, 3, &p.joiner, protocol.MaxTextBytes, protocol.MaxSettings)
}

// differences is a row with differences.
func differences(c *wire.Codec, n wire.Number, all *[]protocol.Difference) {
	if !c.At(n) {
		return
	}
	var p rawDifferences
	if !c.Reading() {
		for _, d := range *all {
			p.key, p.member, p.joiner = append(p.key, d.Key), append(p.member, d.Member), append(p.joiner, d.Joiner)
		}
	}
	if !wire.Message(c, n, &p, (*rawDifferences).fields) {
		return
	}
	c.Fail(columns("differences", len(p.key), protocol.MaxSettings, len(p.member), len(p.joiner)))
	for i := range min(len(p.key), len(p.member), len(p.joiner)) {
		*all = append(*all, protocol.Difference{Key: p.key[i], Member: p.member[i], Joiner: p.joiner[i]})
	}
}

// columns checks that the columns of a list have one length, at most limit.
func columns(what string, length, limit int, others ...int) error {
	if length > limit {
		return wire.Malformed("%d %s, at most %d", length, what, limit)
	}
	for _, other := range others {
		if other != length {
			return wire.Malformed("columns of %s of lengths %d and %d", what, length, other)
		}
	}
	return nil
}

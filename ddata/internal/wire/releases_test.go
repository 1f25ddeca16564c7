// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/wire"
	numbers "github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/machine/wire/wiretest"
)

// Each message says why its fields are in every release, and those that are not are fields of one.
func TestEachMessageSaysWhyItIsRequired(t *testing.T) {
	required := wire.Required()
	for _, f := range wire.Spared() {
		message, _, _ := strings.Cut(f.Name, ".")
		require.NotEmpty(t, required[message], f.Name)
	}
	for _, name := range append(bodiesInText(t), "Envelope", "Register", "Entry", "Change") {
		require.NotEmpty(t, required[name], name)
		delete(required, name)
	}
	require.Empty(t, required, "no such messages")
}

// Law: a replica of the release before a field understands those of the present one, and they understand it; what it
// says has all but that field.
func TestReleasesUnderstandEachOtherWithoutAField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, f := drawEnvelope(t), rapid.SampledFrom(wire.Spared()).Draw(t, "field")
		before := wiretest.Without(codec, f.Paths...)
		read, err := before.Received(m)
		require.NoError(t, err, f.Name)
		sent, err := before.Sent(read)
		require.NoError(t, err, f.Name)
		require.Equal(t, read, sent, f.Name)
		again, err := before.Sent(m)
		require.NoError(t, err, f.Name)
		require.Equal(t, read, again, f.Name)
	})
	sample := samples()
	for name, field := range map[string]string{
		"deltas-taken": "DeltasTaken.Refusals.Reason", "put-taken": "PutTaken.Refusals.Reason", "ask": "Ask.Hash",
		"committed": "Committed.Reason",
	} {
		for _, f := range wire.Spared() {
			if f.Name == field {
				m := protocol.Envelope{Body: sample[name]}
				read, err := wiretest.Without(codec, f.Paths...).Received(m)
				require.NoError(t, err)
				require.NotEqual(t, m, read, "the path leads to no field: %s", field)
			}
		}
	}
}

// Law: a register goes through a replica of the release before a field with nothing lost, and to a disk and back.
// Fields that name places in the table of zones are none that a later release could add.
func TestRegistersLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawEnvelope(t)
		m.Register, m.Body = drawRegister.Draw(t, "register"), protocol.Accept{Slot: 1, Value: drawRegister.Draw(t, "value")}
		n := numbers.Number(rapid.SampledFrom([]uint32{3, 9, 10, 11, 14}).Draw(t, "number"))
		before := wiretest.Without(codec, numbers.Path{7, n}, numbers.Path{19, 5, n})
		read, err := before.Received(m)
		require.NoError(t, err)
		sent, err := before.Sent(read)
		require.NoError(t, err)
		require.Equal(t, m, sent)
		meta, err := wire.DecodeMeta(wire.AppendMeta(nil, protocol.Meta{Register: m.Register, Value: m.Register}))
		require.NoError(t, err)
		require.Equal(t, m.Register, meta.Register)
		require.Equal(t, m.Register, meta.Value)
	})
}

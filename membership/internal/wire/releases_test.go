// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	numbers "github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/machine/wire/wiretest"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/internal/wire"
)

// pathsOf returns the paths of all fields in the document by their names, such as "Vote.reason".
func pathsOf(t *testing.T) map[string][]numbers.Path {
	t.Helper()
	all := map[string][]numbers.Path{}
	var walk func(of protoreflect.MessageDescriptor, at numbers.Path)
	walk = func(of protoreflect.MessageDescriptor, at numbers.Path) {
		for i := range of.Fields().Len() {
			f := of.Fields().Get(i)
			path := append(slices.Clone(at), numbers.Number(f.Number()))
			name := string(of.Name()) + "." + string(f.Name())
			all[name] = append(all[name], path)
			if f.Message() != nil {
				walk(f.Message(), path)
			}
		}
	}
	walk(made(t, nil).Descriptor(), nil)
	return all
}

// Each field of the document may be absent, or its message says why not.
func TestEachFieldIsSparedOrRequired(t *testing.T) {
	paths := pathsOf(t)
	for _, f := range wire.Spared() {
		require.Equal(t, paths[f.Name], f.Paths, f.Name)
	}
	messages := made(t, nil).Descriptor().ParentFile().Messages()
	required := wire.Required()
	for i := range messages.Len() {
		name := string(messages.Get(i).Name())
		require.NotEmpty(t, required[name], name)
		delete(required, name)
	}
	require.Empty(t, required, "no such messages")
}

// A member of the release before a field understands those of the present one, and they understand it: what it says has
// all but that field.
func TestReleasesUnderstandEachOtherWithoutAField(t *testing.T) {
	for _, f := range wire.Spared() {
		before := wiretest.Without(wire.Codec{}, f.Paths...)
		for name, message := range messages() {
			read, err := before.Received(message)
			require.NoError(t, err, "%s without %s", name, f.Name)
			sent, err := before.Sent(read)
			require.NoError(t, err, "%s without %s", name, f.Name)
			if _, ok := message.(protocol.GossipDelta); ok {
				continue // It has none of these fields.
			}
			requireSame(t, read, sent)
			again, err := before.Sent(message)
			require.NoError(t, err)
			requireSame(t, read, again)
		}
	}
}

// What is passed on goes through a member of the release before a field with nothing lost: members' records, voters,
// the downing strategy and the registers, in states and in requests to join.
func TestWhatIsPassedOnLosesNothing(t *testing.T) {
	paths := pathsOf(t)
	kept := []string{"Config.by", "Config.data", "Config.previous_data", "Downing.majority_only", "Downing.previous"}
	for _, name := range kept {
		before := wiretest.Without(wire.Codec{}, paths[name]...)
		for _, which := range []string{"gossip-state-later", "gossip-state-downing", "welcome", "gossip-delta", "gossip-delta-full", "join-request-later"} {
			message := messages()[which]
			read, err := before.Received(message)
			require.NoError(t, err, "%s without %s", which, name)
			sent, err := before.Sent(read)
			require.NoError(t, err, "%s without %s", which, name)
			require.Equal(t, encode(t, message), encode(t, sent), "%s without %s", which, name)
		}
	}
}

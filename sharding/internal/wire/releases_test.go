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
	"github.com/quorate/quorate/sharding/internal/wire"
)

// pathsOf returns the paths of all fields of a control message by their names, such as "Moved.reason", and the names of
// all messages in it.
func pathsOf(t *testing.T) (paths map[string][]numbers.Path, messages []string) {
	t.Helper()
	paths = map[string][]numbers.Path{}
	var walk func(of protoreflect.MessageDescriptor, at numbers.Path)
	walk = func(of protoreflect.MessageDescriptor, at numbers.Path) {
		messages = append(messages, string(of.Name()))
		for i := range of.Fields().Len() {
			f := of.Fields().Get(i)
			path := append(slices.Clone(at), numbers.Number(f.Number()))
			name := string(of.Name()) + "." + string(f.Name())
			paths[name] = append(paths[name], path)
			if f.Message() != nil {
				walk(f.Message(), path)
			}
		}
	}
	walk(document.New(t, "Control").Descriptor(), nil)
	slices.Sort(messages)
	return paths, slices.Compact(messages)
}

// Each field of the document may be absent, or its message says why not.
func TestEachFieldIsSparedOrRequired(t *testing.T) {
	paths, messages := pathsOf(t)
	for _, f := range wire.Spared() {
		require.Equal(t, paths[f.Name], f.Paths, f.Name)
	}
	required := wire.Required()
	for _, name := range messages {
		require.NotEmpty(t, required[name], name)
		delete(required, name)
	}
	require.Empty(t, required, "no such messages")
}

// A node of the release before a field understands those of the present one, and they understand it: what it says has
// all but that field.
func TestReleasesUnderstandEachOtherWithoutAField(t *testing.T) {
	for _, f := range wire.Spared() {
		before, differs := wiretest.Without(codec, f.Paths...), false
		for _, m := range controls() {
			read, err := before.Received(m)
			require.NoError(t, err, "%T without %s", m, f.Name)
			sent, err := before.Sent(read)
			require.NoError(t, err, "%T without %s", m, f.Name)
			require.Equal(t, read, sent, "%T without %s", m, f.Name)
			again, err := before.Sent(m)
			require.NoError(t, err)
			require.Equal(t, read, again, "%T without %s", m, f.Name)
			b, err := codec.Append(nil, m)
			require.NoError(t, err)
			less, err := codec.Append(nil, read)
			require.NoError(t, err)
			differs = differs || len(less) < len(b)
		}
		require.True(t, differs, "no message has %s", f.Name)
	}
}

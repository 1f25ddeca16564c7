// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/plugins/internal/wire"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

func TestLineIsSafeToLog(t *testing.T) {
	for _, c := range []struct {
		in, want string
		limit    int
	}{
		{"", "", 10},
		{"plain", "plain", 10},
		{"two\nlines\x1b[0m", "two lines [0m", 20},
		{"bad\xff", "bad?", 10},
		{"ééé", "éé", 4},
		{"ééé", "éé", 5},
		{"\xbf\xbf\xbf", "", 2},
		{"xxé", "xx", 3},
	} {
		require.Equal(t, c.want, wire.Line(c.in, c.limit), "%q", c.in)
	}
}

// A text that is no UTF-8 is sent all the same, and is no shorter: who has checked its length has checked it.
func TestTextsThatAreNoUTF8(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "é \ufffd": "é \ufffd", "a\xffb": "a?b", "\x80\x80é": "??é", "\xc3": "?",
	} {
		require.Equal(t, want, wire.Text(text), "%q", text)
	}
	require.Equal(t, "?", wire.Line("\x80\x80\x80\x80\x80\x80\x80", 6), "a reason does not vanish")
}

// FuzzManifest reads bytes as the manifest by which a plugin answers its configuration.
//
// covers F60.
func FuzzManifest(f *testing.F) {
	b, err := proto.Marshal(&pluginv1.ConfigureResponse{Name: "n", Policy: 1, Errors: []*pluginv1.SettingError{{Key: "k", Reason: "r"}}})
	require.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var configured pluginv1.ConfigureResponse
		if proto.Unmarshal(b, &configured) != nil {
			return
		}
		if m, err := wire.ManifestFromProto(&configured); err == nil {
			require.NotEmpty(t, m.Name)
			require.NotEmpty(t, m.Policy)
		}
	})
}

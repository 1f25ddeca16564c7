// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
)

var drawScale = rapid.Custom(func(t *rapid.T) control.Scale {
	return control.Scale{Revision: rapid.Uint64Range(1, 1<<63).Draw(t, "revision"), Count: rapid.Uint32Range(1, protocol.MaxShards).Draw(t, "count")}
})

// What is said about the number of shards in use comes as it was said. A refusal of a later version
// counts as one of a coordinator that does not decide.
func TestScalesComeAsTheyWereSaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind, at := drawName.Draw(t, "kind"), drawTerm.Draw(t, "term")
		refusal := control.ScaleRefusal(rapid.Uint8().Draw(t, "refusal"))
		for _, m := range []any{
			control.TellScale{Kind: kind, Term: at, Scale: drawScale.Draw(t, "scale")},
			control.SetScale{Kind: kind, ID: rapid.Uint64().Draw(t, "id"), Base: rapid.Uint64().Draw(t, "base"), Count: rapid.Uint32Range(0, protocol.MaxShards).Draw(t, "count")},
			control.ScaleAnswered{
				Kind: kind, ID: rapid.Uint64().Draw(t, "id"), Refusal: refusal, Detail: drawText.Draw(t, "detail"),
				Current: drawScale.Draw(t, "current"), Next: drawScale.Draw(t, "next"), Told: rapid.Bool().Draw(t, "told"), CalledOff: rapid.Uint64().Draw(t, "called off"),
			},
			control.Host{Kind: kind, Term: at, Scale: drawScale.Draw(t, "scale")},
			control.Register{Kind: kind, Term: at, Registration: control.Registration{Scale: drawScale.Draw(t, "scale")}},
		} {
			b, err := wire.Codec{}.Append(nil, m)
			require.NoError(t, err)
			got, err := wire.Codec{}.Decode(b)
			require.NoError(t, err)
			if a, answers := m.(control.ScaleAnswered); answers && a.Refusal > control.ScaleStale {
				a.Refusal = control.ScaleUnavailable
				m = a
			}
			require.Equal(t, m, got)
			got, err = wire.Codec{}.Decode(again(t, b, document.New(t, "Control")))
			require.NoError(t, err)
			require.Equal(t, m, got)
		}
	})
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership"
)

// A member is looked up, and then started again before the command that names it: the command
// changes nothing, and says who lives there now.
//
// covers F7, F28, F29.
func TestARestartOvertakesACommand(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		nodes := p.cluster(3)
		found, err := nodes[0].View().Find(at(3))
		require.NoError(t, err)
		old := found.Node
		require.NoError(t, nodes[2].Close())
		again := p.start(config(3))
		p.awaitUp(nodes[0], nodes[1], again)
		before := nodes[0].State()
		for _, command := range []func(context.Context, string) error{nodes[0].Down, nodes[0].LeaveMember} {
			err := command(t.Context(), old.String())
			require.ErrorIs(t, err, membership.ErrUnknownMember)
			var unknown *membership.UnknownMemberError
			require.ErrorAs(t, err, &unknown)
			require.Equal(t, old, unknown.Named)
			require.Equal(t, again.Self(), unknown.Now)
			require.Equal(t, old, unknown.Removed.Node)
			require.EqualError(t, err, "membership: "+old.String()+" is not a member any more: it was started again, and is "+again.Self().String()+" now")
		}
		require.True(t, before.Equal(nodes[0].State()), "nothing was changed")
		<-time.After(10 * time.Second)
		p.awaitUp(nodes[0], nodes[1], again)

		require.NoError(t, nodes[0].Down(t.Context(), at(3)), "an address means who lives there")
		require.ErrorIs(t, p.ended(again), membership.ErrDown)
	})
}

// A name is an address or an id, and the error says what became of who had it.
func TestMembersAreFoundByName(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		nodes := p.cluster(3)
		third := nodes[2].Self().String()
		for _, name := range []string{third, at(3)} {
			m, err := nodes[0].View().Find(name)
			require.NoError(t, err)
			require.Equal(t, nodes[2].Self(), m.Node)
		}
		for name, says := range map[string]string{
			at(9): "membership: 10.0.0.9:7946 is not a member of this cluster", at(9) + "#1": "membership: 10.0.0.9:7946#1 is not a member of this cluster",
			at(3) + "#": "uid is not a hexadecimal number above 0", "nowhere": "has no port",
		} {
			_, err := nodes[0].View().Find(name)
			require.ErrorContains(t, err, says)
			require.ErrorContains(t, nodes[0].Down(t.Context(), name), says)
		}
		require.NoError(t, nodes[0].LeaveMember(t.Context(), third))
		require.NoError(t, p.ended(nodes[2]))
		p.await(nodes[0], "it is removed", func(v membership.View) bool { return len(v.State.Members()) == 2 })
		for _, name := range []string{third, at(3)} {
			require.ErrorContains(t, nodes[0].LeaveMember(t.Context(), name), "membership: "+name+" is gone: "+third+" was removed at 2")
			require.ErrorContains(t, nodes[0].LeaveMember(t.Context(), name), ", after it had left")
		}
		require.NoError(t, nodes[0].Down(t.Context(), nodes[0].Self().String()), "it ends by the command, and has obeyed it")
		require.ErrorIs(t, p.ended(nodes[0]), membership.ErrDown)
	})
}

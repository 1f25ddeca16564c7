// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership"
)

// A node hears the others and is heard by nobody. It ends by its own decision, whatever
// of its answers is stuck, and the others go on.
func TestANodeThatNobodyHearsEnds(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		nodes := p.cluster(4)
		for i := 1; i <= 3; i++ {
			p.network.CutOneWay(address(4), address(i))
		}
		select {
		case <-nodes[3].Done():
		case <-time.After(30 * time.Second):
			p.network.HealAll() // So that the bubble can end.
			t.Fatalf("it has not ended\n%s", p.log)
		}
		require.ErrorIs(t, nodes[3].Err(), membership.ErrDown)
		p.awaitUp(nodes[:3]...)
	})
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package mutual_test

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/transport/mutual"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
)

// An authority that has expired is a fault by which nothing works if it is the only one, of the files of doors too.
// Beside another one it is told of, and keeps nobody from starting.
func TestAnAuthorityThatHasExpiredIsAFault(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		former := mutualtest.NewAuthority(t, "former")
		files := former.Write(t, dir, former.Issue(t, mutualtest.Leaf{Until: 99 * day}))
		for _, need := range []mutual.Requirements{{}, {Serves: true}} {
			leaf, faults := mutual.Inspect(files, need)
			require.NotNil(t, leaf)
			require.Empty(t, faults)
		}
		<-time.After(2 * day)
		for _, need := range []mutual.Requirements{{}, {Serves: true}} {
			_, faults := mutual.Inspect(files, need)
			require.Len(t, faults, 1)
			require.Equal(t, "authorities", faults[0].Key)
			require.Equal(t, files.Authorities, faults[0].File)
			require.Equal(t, "CN=former: it has expired on 2000-01-02T00:00:00Z", faults[0].Reason)
			require.False(t, faults[0].Works)
		}
		next := mutualtest.NewAuthority(t, "next")
		next.Write(t, dir, next.Issue(t, mutualtest.Leaf{}))
		require.NoError(t, os.WriteFile(files.Authorities, append(former.PEM(), next.PEM()...), 0o600))
		_, faults := mutual.Inspect(files, mutual.Requirements{})
		require.Len(t, faults, 1)
		require.True(t, faults[0].Works)
		opened, err := mutual.Open(files, nil)
		require.NoError(t, err)
		ends := opened.Ends()
		require.Len(t, ends, 3)
		require.Empty(t, ends[2].Warning(time.Now()))
		require.Equal(t, "the authority CN=former in "+files.Authorities+" has expired on 2000-01-02 00:00:00, so that no connection can be made by it: "+
			"list its successor beside it, and take it out when no node shows a certificate signed by it", ends[1].Warning(time.Now()))
	})
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/file"
	"github.com/quorate/quorate/downing/lease/leasetest"
	"github.com/quorate/quorate/internal/patience"
)

func open(t testing.TB, dir string) *file.Store {
	t.Helper()
	s, err := file.New(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func claim(owner string) lease.Claim {
	return lease.Claim{Name: "bank", Owner: owner, TTL: 20 * time.Second}
}

func TestTheStoreKeepsTheContract(t *testing.T) {
	leasetest.Test(t, leasetest.Place{
		TTL: 3 * time.Second, Lasting: true,
		New: func(t testing.TB) leasetest.Server {
			dir := t.TempDir()
			return leasetest.Server{Open: func(t testing.TB) lease.Store { return open(t, dir) }}
		},
	})
}

func TestTokensOutliveTheStore(t *testing.T) {
	dir := t.TempDir()
	for want := uint64(1); want < 4; want++ {
		s := open(t, dir)
		a, err := s.Take(t.Context(), claim("a"))
		require.NoError(t, err)
		require.Equal(t, lease.Answer{Granted: true, Owner: "a", Token: want, TTL: 20 * time.Second}, a)
		require.NoError(t, s.Close())
		_, err = s.Take(t.Context(), claim("a"))
		require.ErrorIs(t, err, file.ErrClosed)
	}
}

// A store that was opened by a configuration has a lease last when its holder has ended without
// giving it back, whoever asks next, and whether that one ends as well.
func TestALeaseCanOutliveItsProcess(t *testing.T) {
	dir := t.TempDir()
	last := func() *file.Store {
		s, err := file.Open(file.Config{Directory: dir})
		require.NoError(t, err)
		return s
	}
	short := func(owner string) lease.Claim {
		return lease.Claim{Name: "bank", Owner: owner, TTL: 100 * time.Millisecond}
	}
	first := last()
	_, err := first.Take(t.Context(), short("a"))
	require.NoError(t, err)
	require.NoError(t, first.Close())
	began := time.Now()
	second := last()
	_, err = second.Take(t.Context(), short("b"))
	require.ErrorIs(t, err, file.ErrUndecided)
	require.ErrorContains(t, err, "it was that of a")
	require.NoError(t, second.Close(), "who waits ends")

	third, other := last(), last()
	patience.Eventually(t, func() bool {
		a, err := third.Take(t.Context(), short("c"))
		if err == nil {
			require.True(t, a.Granted)
			require.EqualValues(t, 2, a.Token)
			return true
		}
		require.ErrorIs(t, err, file.ErrUndecided)
		a, err = other.Take(t.Context(), short("d"))
		require.NoError(t, err)
		require.Equal(t, lease.Answer{Owner: "a"}, a, "it is still that of the process that has ended")
		return false
	}, "the lease ends")
	require.GreaterOrEqual(t, time.Since(began), 100*time.Millisecond)
	require.NoError(t, third.Give(t.Context(), short("c")))
	a, err := other.Take(t.Context(), short("d"))
	require.NoError(t, err, "what was given back is free at once")
	require.EqualValues(t, 3, a.Token)
	require.NoError(t, errors.Join(third.Close(), other.Close()))

	_, err = file.Open(file.Default())
	require.ErrorContains(t, err, "directory: must be set")
	c := file.Config{Directory: "x"}
	*c.Paths()[0] = "y"
	require.Equal(t, file.Config{Directory: "y"}, c)
}

func TestADamagedFileIsNeverBegunAnew(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "cut": "quorate-lease 1\n7", "no token": "quorate-lease 1\nx\n\"a\"\n",
		"the last token": "quorate-lease 1\n" + strconv.FormatUint(math.MaxUint64, 10) + "\n\"a\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "bank.lease"), []byte(text), 0o600))
			s := open(t, dir)
			_, err := s.Take(t.Context(), claim("a"))
			require.ErrorIs(t, err, file.ErrDamaged)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "bank.lease"), []byte("quorate-lease 1\n41\n\"z\"\n"), 0o600))
			a, err := s.Take(t.Context(), claim("a"))
			require.NoError(t, err, "the lock was given back")
			require.EqualValues(t, 42, a.Token)
		})
	}
}

func TestALockThatWasDeletedIsNoticed(t *testing.T) {
	dir := t.TempDir()
	one, two := open(t, dir), open(t, dir)
	_, err := one.Take(t.Context(), claim("a"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "bank.lock")))
	_, err = one.Take(t.Context(), claim("a"))
	require.ErrorContains(t, err, "somebody deleted or replaced")
	a, err := two.Take(t.Context(), claim("b"))
	require.NoError(t, err)
	require.EqualValues(t, 2, a.Token)
	a, err = one.Take(t.Context(), claim("a"))
	require.NoError(t, err)
	require.Equal(t, lease.Answer{Owner: "b"}, a)
}

func TestADirectoryThatCannotBeMadeIsAnErrorAtStart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	_, err := file.New(name)
	require.Error(t, err)
	s := open(t, t.TempDir())
	_, err = s.Take(t.Context(), lease.Claim{Name: "../a", Owner: "a", TTL: time.Second})
	require.ErrorContains(t, err, "is no name of a lease")
	require.Error(t, errors.Join(s.Give(t.Context(), lease.Claim{Name: "../a"})))
}

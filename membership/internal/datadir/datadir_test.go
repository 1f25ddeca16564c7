// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestABirthIsThereAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "n1")
	d, err := Open(path, "bank")
	require.NoError(t, err)
	require.Zero(t, d.Born())
	require.NoError(t, d.Remember(7))
	require.NoError(t, d.Remember(5), "an earlier one is not news")
	require.Equal(t, int64(7), d.Born())
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	d, err = Open(path, "bank")
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	require.Equal(t, int64(7), d.Born())
	left, err := os.ReadDir(path)
	require.NoError(t, err)
	require.Len(t, left, 2, "the lock and the birth, no temporary file")
}

func TestADirectoryIsForOneProcess(t *testing.T) {
	path := t.TempDir()
	d, err := Open(path, "bank")
	require.NoError(t, err)
	_, err = Open(path, "bank")
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, path)
	require.NoError(t, d.Close())
	d, err = Open(path, "bank")
	require.NoError(t, err)
	require.NoError(t, d.Close())
}

func TestWhatSomebodyElseWroteIsRefusedAndKept(t *testing.T) {
	good := string(birth{born: 12, cluster: "bank"}.text())
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"empty":         {"", ErrDamaged},
		"cut":           {good[:len(good)-3], ErrDamaged},
		"changed":       {strings.Replace(good, "12", "13", 1), ErrDamaged},
		"longer":        {good + good, ErrDamaged},
		"large":         {strings.Repeat("x", 1<<20), ErrDamaged},
		"other":         {"hello\n", ErrDamaged},
		"other cluster": {string(birth{born: 12, cluster: "shop"}.text()), ErrForeign},
		"newer":         {"quorate-birth 2 12 new things\n", ErrForeign},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			file := filepath.Join(path, birthName)
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
			d, err := Open(path, "bank")
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, file)
			require.Nil(t, d)
			kept, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, c.text, string(kept))
			require.NoError(t, os.Remove(file))
			d, err = Open(path, "bank")
			require.NoError(t, err, "the directory is free again")
			require.NoError(t, d.Close())
		})
	}
}

// What cannot be written is told, and what is there still counts. A directory in
// the place of a file fails for the superuser too, as a full disk would.
func TestADirectoryThatCannotBeWrittenIsRead(t *testing.T) {
	path := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(path, birthName), birth{born: 12, cluster: "bank"}.text(), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(path, lockName), 0o700))
	d, err := Open(path, "bank")
	require.ErrorIs(t, err, ErrUnwritable)
	require.Equal(t, int64(12), d.Born())
	require.ErrorIs(t, d.Remember(13), ErrUnwritable)
	require.Equal(t, int64(12), d.Born())
	require.NoError(t, d.Close())
}

func TestAWriteThatFailsLeavesTheOldContent(t *testing.T) {
	path := t.TempDir()
	d, err := Open(path, "bank")
	require.NoError(t, err)
	require.NoError(t, d.Remember(12))
	require.NoError(t, os.MkdirAll(filepath.Join(path, temporary, "full"), 0o700))
	require.ErrorIs(t, d.Remember(13), ErrUnwritable)
	require.Equal(t, int64(12), d.Born())
	require.NoError(t, os.RemoveAll(filepath.Join(path, temporary)))
	require.NoError(t, d.Remember(13), "it is tried again")
	require.NoError(t, d.Close())
}

func TestAFileIsNoDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err := Open(path, "bank")
	require.ErrorContains(t, err, "no directory")
}

func TestBirthLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := birth{born: rapid.Int64Min(1).Draw(t, "born"), cluster: rapid.StringN(1, -1, 255).Draw(t, "cluster")}
		text := b.text()
		require.LessOrEqual(t, len(text), birthBytesMax)
		got, err := parseBirth(text)
		require.NoError(t, err)
		require.Equal(t, b, got)
		i := rapid.IntRange(0, len(text)-1).Draw(t, "i")
		text[i] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		_, err = parseBirth(text)
		require.Error(t, err)
	})
}

func FuzzParseBirth(f *testing.F) {
	f.Add(birth{born: 12, cluster: "bank"}.text())
	f.Add([]byte("quorate-birth 2 12 new\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if b, err := parseBirth(text); err == nil {
			require.Equal(t, string(text), string(b.text()))
		}
	})
}

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

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/directory"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// record is a record with every line set.
func record(promise int64) protocol.Record {
	node := func(i int) gossip.NodeID {
		return gossip.NodeID{Address: gossip.Address{Host: "10.0.0.1", Port: uint16(7000 + i)}, UID: gossip.UID(i + 1)}
	}
	return protocol.Record{
		Data: 0xfedcba9876543210, Promise: promise, EpochBorn: promise - 1,
		Cluster: gossip.ClusterID{Born: 5, Nonce: 0xfedcba9876543211, Origin: 7}, Stamp: protocol.Stamp{Born: 5, Gen: 4, By: 3},
		Voters:   []protocol.Voter{{Node: node(1), Data: 0xfedcba9876543210}, {Node: node(2)}},
		Previous: []protocol.Voter{{Node: node(2)}},
		Yielded:  gossip.Yield{To: gossip.ClusterID{Born: 6, Nonce: 9, Origin: 7}, At: [gossip.YieldAddresses]gossip.Address{node(3).Address, node(4).Address}},
	}
}

func TestARecordIsThereAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "n1")
	d, err := Open(path, "bank")
	require.NoError(t, err)
	require.Zero(t, d.Record())
	require.NoError(t, d.Keep(record(7)))
	require.NoError(t, d.Keep(record(8)))
	require.Equal(t, record(8), d.Record())
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	d, err = Open(path, "bank")
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	require.Equal(t, record(8), d.Record())
	left, err := os.ReadDir(path)
	require.NoError(t, err)
	require.Len(t, left, 2, "the lock and the record, no temporary file")
}

func TestADirectoryIsForOneProcess(t *testing.T) {
	path := t.TempDir()
	d, err := Open(path, "bank")
	require.NoError(t, err)
	_, err = Open(path, "bank")
	require.ErrorIs(t, err, directory.ErrInUse)
	require.ErrorContains(t, err, path)
	require.NoError(t, d.Close())
	d, err = Open(path, "bank")
	require.NoError(t, err)
	require.NoError(t, d.Close())
}

func TestWhatSomebodyElseWroteIsRefusedAndKept(t *testing.T) {
	good := string(file{cluster: "bank", record: record(12)}.text())
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"empty":         {"", ErrDamaged},
		"cut":           {good[:len(good)-3], ErrDamaged},
		"torn":          {good[:len(good)/2], ErrDamaged},
		"changed":       {strings.Replace(good, "promise 12", "promise 13", 1), ErrDamaged},
		"line twice":    {strings.Replace(good, "promise 12\n", "promise 12\npromise 12\n", 1), ErrDamaged},
		"strange line":  {strings.Replace(good, "promise", "premise", 1), ErrDamaged},
		"longer":        {good + good, ErrDamaged},
		"large":         {strings.Repeat("x", maxRecordBytes+1), ErrDamaged},
		"other":         {"hello\n", ErrDamaged},
		"no data id":    {string(file{cluster: "bank"}.text()), ErrDamaged},
		"other cluster": {string(file{cluster: "shop", record: record(12)}.text()), ErrForeign},
		"newer":         {"quorate-record 2 new things\n", ErrForeign},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			file := filepath.Join(path, recordName)
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

// A directory in the place of a file fails for the superuser too, as a full or
// read-only disk would.
func TestADirectoryThatCannotBeWrittenIsUsedOnlyIfItHoldsNothing(t *testing.T) {
	path := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(path, lockName), 0o700))
	d, err := Open(path, "bank")
	require.ErrorIs(t, err, ErrUnwritable)
	require.False(t, d.Writable())
	require.ErrorIs(t, d.Keep(record(13)), ErrUnwritable)
	require.NoError(t, d.Close())
	require.NoError(t, os.WriteFile(filepath.Join(path, recordName), file{cluster: "bank", record: record(12)}.text(), 0o600))
	d, err = Open(path, "bank")
	require.ErrorIs(t, err, ErrUnwritable)
	require.ErrorContains(t, err, "out of date")
	require.Nil(t, d, "what it remembers could not follow the cluster")
}

func TestARecordThatCannotBeReplacedIsRemoved(t *testing.T) {
	path := t.TempDir()
	d, err := Open(path, "bank")
	require.NoError(t, err)
	require.NoError(t, d.Keep(record(12)))
	require.NoError(t, os.MkdirAll(filepath.Join(path, temporary, "full"), 0o700))
	require.ErrorIs(t, d.Keep(record(13)), protocol.ErrRecordLost)
	require.Zero(t, d.Record())
	require.NoError(t, d.Close())
	d, err = Open(path, "bank")
	require.NoError(t, err)
	require.Zero(t, d.Record(), "a lost disk speaks for nobody")
	require.NoError(t, d.Close())
}

// A record that can be neither replaced nor removed has an error of its own: the node
// must end.
func TestARecordThatCannotBeRemovedEitherIsTold(t *testing.T) {
	path := t.TempDir()
	d, err := Open(path, "bank")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(path, temporary, "full"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(path, recordName, "stuck"), 0o700))
	err = d.Keep(record(13))
	require.Error(t, err)
	require.NotErrorIs(t, err, protocol.ErrRecordLost)
	require.NoError(t, d.Close())
}

func TestAFileIsNoDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err := Open(path, "bank")
	require.ErrorContains(t, err, "no directory")
}

func TestRecordLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := file{cluster: rapid.StringN(1, -1, 255).Draw(t, "cluster"), record: record(rapid.Int64Range(1, 1<<40).Draw(t, "promise"))}
		f.record.Data = gossip.DataID(rapid.Uint64Min(1).Draw(t, "data"))
		text := f.text()
		got, err := parse(text)
		require.NoError(t, err)
		require.Equal(t, f, got)
		i := rapid.IntRange(0, len(text)-1).Draw(t, "i")
		text[i] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		_, err = parse(text)
		require.Error(t, err)
	})
}

func FuzzParseRecord(f *testing.F) {
	f.Add(file{cluster: "bank", record: record(12)}.text())
	f.Add([]byte("quorate-record 2 12 new\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if b, err := parse(text); err == nil {
			require.Equal(t, string(text), string(b.text()))
		}
	})
}

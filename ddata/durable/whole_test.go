// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/store"
)

// written returns a tray with a run of two groups of several frames each.
func written(t *testing.T, forge func(*runWriter)) (*tray, runFile) {
	t.Helper()
	d := newTray(nil)
	w, err := createRun(d, "run-1", fileHead{number: 1, tag: 42, cluster: "bank"})
	require.NoError(t, err)
	for _, group := range []string{"g", "h"} {
		w.group(group, false, nil)
		for i := range 3 {
			require.NoError(t, w.change(item{fmt.Sprint(i), entry{value: make([]byte, runFrame)}}))
		}
		require.NoError(t, w.groupDone())
	}
	forge(w)
	named, err := w.finish()
	require.NoError(t, err)
	return d, named
}

// A run all of whose check sums are right, and from which something has vanished, is
// noticed.
func TestARunFromWhichSomethingHasVanished(t *testing.T) {
	for name, c := range map[string]struct {
		forge func(*runWriter)
		want  string
	}{
		"nothing":        {func(*runWriter) {}, ""},
		"a change":       {func(w *runWriter) { w.index[0].changes++ }, "has 3 changes"},
		"a value":        {func(w *runWriter) { w.index[0].sum++ }, "and was written with 3"},
		"the last frame": {func(w *runWriter) { w.index[0].end -= (w.index[0].end - w.index[0].at) / 3 }, "has 2 changes"},
		"the first":      {func(w *runWriter) { w.index[0].at += (w.index[0].end - w.index[0].at) / 3 }, "expected was frame 1"},
		"another group":  {func(w *runWriter) { w.index[0].at, w.index[0].end = w.index[1].at, w.index[1].end }, `of group "h"`},
		"the group":      {func(w *runWriter) { w.index[0].at = w.index[0].end }, "has 0 changes"},
	} {
		t.Run(name, func(t *testing.T) {
			d, named := written(t, c.forge)
			r, err := openRun(d, named, nil)
			require.NoError(t, err)
			_, err = readGroup(t.Context(), []source{r}, "g", nil, new(counter))
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, store.ErrCorrupt)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A log from which a whole frame has vanished, or in which one is of another kind, is
// noticed.
func TestALogFromWhichAFrameHasVanished(t *testing.T) {
	for name, between := range map[string]func(*logWriter){
		"vanished": func(w *logWriter) { w.synced.frames++ },
		"twice":    func(w *logWriter) { w.synced.frames-- },
	} {
		d := newTray(nil)
		l := logFile{number: 1, tag: 42}
		w, err := createLog(d, l, "bank")
		require.NoError(t, err)
		add := func(key string) {
			require.NoError(t, w.append(appendBatch(begin(nil), store.Batch{Group: "g", Put: []store.Record{{Key: key}}})))
		}
		add("a")
		between(w)
		add("b")
		_, err = readLog(d, l, table{}, nil)
		require.ErrorIs(t, err, store.ErrCorrupt, name)
		require.ErrorContains(t, err, "expected was frame 1", name)
		lost, loose := new(losses), table{}
		_, err = readLog(d, l, loose, lost)
		require.NoError(t, err)
		require.Len(t, lost.list, 1)
		require.Contains(t, loose["g"].entries, "a")
	}
}

// A file that was exchanged for another one of a store is noticed, even for one of the
// same length.
func TestAFileThatWasExchanged(t *testing.T) {
	d, want := sample(t, 50)
	other, _ := sample(t, 50)
	require.NotEmpty(t, want)
	for name := range d.Names {
		if !ofStore(name) || other.Names[name] == nil {
			continue
		}
		mixed := d.clone()
		mixed.Names[name] = other.clone().Names[name]
		require.True(t, verdict(t, mixed, want, name))
	}
}

// A manifest that is older than the logs is noticed.
func TestAManifestThatIsOlder(t *testing.T) {
	d := newTray(nil)
	s, err := open(small, d, lockless())
	require.NoError(t, err)
	old := d.clone().Names[manifestName]
	for _, key := range []string{"a", "b"} {
		require.NoError(t, s.Apply(t.Context(), []store.Batch{{Group: "g", Put: []store.Record{{Key: key}}}}))
		require.NoError(t, s.Close())
		s, err = open(small, d, lockless())
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	d.Names[manifestName] = old
	_, err = open(small, d, lockless())
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.ErrorContains(t, err, "it is older than log-1")
}

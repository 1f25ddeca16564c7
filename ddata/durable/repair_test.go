// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/store"
)

// What a repair leaves can be opened; no value in it is one that was never written, and
// every old file is there under another name.
func TestARepairLeavesWhatIsReadable(t *testing.T) {
	d, want := sample(t, 50)
	ever := everWritten()
	rng := rand.New(rand.NewPCG(9, 9))
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(d.Names)), isAside)
	lost, whole := 0, 0
	for range 150 {
		damaged := d.clone()
		name := names[rng.IntN(len(names))]
		data := damaged.Names[name].Data
		what := fmt.Sprintf("%s of %d bytes", name, len(data))
		switch at := rng.IntN(len(data)); rng.IntN(3) {
		case 0:
			data[at] ^= 1 << rng.IntN(8)
		case 1:
			damaged.Names[name].Data = data[:at]
		case 2:
			clear(data[at:min(len(data), at+rng.IntN(1000))])
		}
		before := bytes.Clone(damaged.Names[name].Data)
		done, err := repair(t.Context(), damaged, counter{})
		require.NoError(t, err, what)
		s, err := open(small, damaged, lockless())
		require.NoError(t, err, what)
		got, err := dump(t, s)
		require.NoError(t, err, what)
		if !done.Damaged {
			require.Equal(t, want, got, what)
			whole++
			continue
		}
		require.Empty(t, done.Report.Fault, what)
		require.NotEqual(t, done.FormerID, done.Report.ID, "%s: who has lost something is another replica", what)
		require.Equal(t, before, damaged.Names[name+damagedSuffix].Data, what)
		for key, value := range got {
			if !strings.Contains(key, "/") {
				continue
			}
			require.True(t, ever[key+"="+value], "%s: %s was never that", what, key)
		}
		for key := range want {
			if _, ok := got[key]; !ok {
				lost++
			}
		}
		require.NoError(t, s.Close())
	}
	require.Positive(t, lost)
	require.Positive(t, whole)
}

// everWritten returns every key and value that the store of sample has ever had.
func everWritten() map[string]bool {
	ever := map[string]bool{}
	rng := rand.New(rand.NewPCG(7, 7))
	for range 60 {
		for _, b := range sampleBatches(rng) {
			if b.Meta != nil {
				ever[b.Group+"/meta="+string(b.Meta)] = true
			}
			for _, r := range b.Put {
				ever[b.Group+"/key/"+r.Key+"="+string(r.Value)] = true
			}
		}
	}
	return ever
}

// A manifest that is gone is made again of the heads of the files, and nothing is lost but
// the ID.
func TestARepairWithoutAManifestLosesNothing(t *testing.T) {
	for _, mark := range []int{-1, 20, 50, 57} {
		d, want := sample(t, mark)
		former := d.clone()
		delete(d.Names, manifestName)
		_, err := open(small, d, lockless())
		require.ErrorIs(t, err, store.ErrCorrupt)
		done, err := repair(t.Context(), d, counter{})
		require.NoError(t, err)
		require.True(t, done.Damaged)
		require.Equal(t, "bank", done.Report.Cluster)
		s, err := open(small, d, lockless())
		require.NoError(t, err)
		got, err := dump(t, s)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, s.Close())
		v, err := readView(former, nil)
		require.NoError(t, err)
		require.NotEqual(t, v.manifest.id, s.ID())
	}
}

// A repair that ends at any operation can be run again, and has destroyed nothing.
func TestARepairCanEndAtAnyMoment(t *testing.T) {
	d, _ := sample(t, 50)
	name := logFile{number: 0}.name()
	for each := range d.Names {
		if strings.HasPrefix(each, "run-") {
			name = each
		}
	}
	d.Names[name].Data[len(d.Names[name].Data)/2] ^= 1
	v, err := readView(d, &losses{})
	require.NoError(t, err)
	want := map[string]int64{}
	report, err := check(t.Context(), d, counter{})
	require.NoError(t, err)
	for _, g := range report.Groups {
		want[g.Name] = g.Keys
	}
	v.close()
	for at := 1; ; at++ {
		cut := d.clone()
		cut.FailAt, cut.Err = at, errTest
		_, err := repair(t.Context(), cut, counter{})
		cut.Crash()
		if err == nil {
			require.Greater(t, at, 10)
			return
		}
		done, err := repair(t.Context(), cut, counter{})
		require.NoError(t, err, "ended at operation %d", at)
		got := map[string]int64{}
		for _, g := range done.Report.Groups {
			got[g.Name] = g.Keys
		}
		require.Equal(t, want, got, "ended at operation %d", at)
		kept := slices.ContainsFunc(slices.Collect(maps.Keys(cut.Names)), func(n string) bool {
			return strings.HasPrefix(n, name+damagedSuffix) && bytes.Equal(cut.Names[n].Data, d.Names[name].Data)
		})
		require.True(t, kept, "ended at operation %d", at)
	}
}

func TestCheckSaysWhatIsThere(t *testing.T) {
	d, want := sample(t, 50)
	var told []int64
	r, err := check(t.Context(), d, counter{tell: func(keys int64) { told = append(told, keys) }})
	require.NoError(t, err)
	require.Empty(t, told, "for so few keys nobody wants to see progress")
	keys := 0
	for key := range want {
		if strings.Contains(key, "/key/") {
			keys++
		}
	}
	require.Equal(t, int64(keys), r.Keys)
	require.Equal(t, "bank", r.Cluster)
	require.Equal(t, uint64(2), r.Starts)
	require.Len(t, r.ID, 16)
	require.Empty(t, r.Fault)
	require.Empty(t, r.Lost)
	var asides int
	for _, f := range r.Files {
		if isAside(f.Name) {
			asides++
			require.False(t, f.Loaded)
		}
		require.Positive(t, f.Bytes)
	}
	require.Positive(t, asides)
	_, err = check(t.Context(), newTray(nil), counter{})
	require.ErrorIs(t, err, ErrNoStore)
}

// What is put aside can be read by its name.
func TestAnExportHasALineForEachKey(t *testing.T) {
	dir := t.TempDir()
	c := Config{Dir: dir, Cluster: "bank", LogBytes: logBytesDefault}
	s, err := Open(t.Context(), c)
	require.NoError(t, err)
	records := []store.Record{{Key: "a", Value: []byte("1")}, {Key: "\xff", Value: []byte{0, 1}}, {Key: "<é>"}}
	require.NoError(t, s.Apply(t.Context(), []store.Batch{{Group: "g", Meta: []byte("m"), Put: records}, {Group: "h\xfe", Put: records[:1]}}))
	require.NoError(t, s.Apply(t.Context(), []store.Batch{{Group: "g", Wipe: true, Aside: true, Put: []store.Record{{Key: "new", Value: []byte("2")}}}}))
	_, err = Export(t.Context(), dir, new(bytes.Buffer), nil)
	require.ErrorIs(t, err, store.ErrInUse)
	require.NoError(t, s.Close())
	var out bytes.Buffer
	done, err := Export(t.Context(), dir, &out, nil)
	require.NoError(t, err)
	require.Equal(t, &Exported{Keys: 2}, done)
	require.Equal(t, lines(`{"group":"g","meta":"bQ=="}
{"group":"g","key":"new","value":"Mg=="}
{"group_base64":"aP4=","key":"a","value":"MQ=="}
`), lines(out.String()))
	r, err := Check(t.Context(), dir, nil)
	require.NoError(t, err)
	out.Reset()
	for _, f := range r.Files {
		if isAside(f.Name) {
			_, err = Export(t.Context(), filepath.Join(dir, f.Name), &out, nil)
			require.NoError(t, err)
		}
	}
	require.Equal(t, lines(`{"group":"g","meta":"bQ=="}
{"group":"g","key":"<é>","value":""}
{"group":"g","key":"a","value":"MQ=="}
{"group":"g","key_base64":"/w==","value":"AAE="}
`), lines(out.String()))
	for line := range strings.Lines(out.String()) {
		require.True(t, json.Valid([]byte(line)))
	}
}

// What a repair has written is exported by its name when a later repair has put it aside. A log is
// refused: what was before it is elsewhere.
func TestARunThatARepairHasMadeIsExported(t *testing.T) {
	dir := t.TempDir()
	c := Config{Dir: dir, Cluster: "bank", LogBytes: logBytesDefault}
	s, err := Open(t.Context(), c)
	require.NoError(t, err)
	require.NoError(t, s.Apply(t.Context(), []store.Batch{{Group: "g", Put: []store.Record{{Key: "a", Value: []byte("1")}}}}))
	require.NoError(t, s.Close())
	_, err = Export(t.Context(), filepath.Join(dir, "log-0"), io.Discard, nil)
	require.ErrorContains(t, err, "it is a log, which says nothing without what was before")
	for range 2 { // The second one replaces the run of the first.
		require.NoError(t, os.Remove(filepath.Join(dir, manifestName)))
		_, err = Repair(t.Context(), dir, nil)
		require.NoError(t, err)
	}
	runs, err := filepath.Glob(filepath.Join(dir, "run-*"+damagedSuffix))
	require.NoError(t, err)
	require.Len(t, runs, 1)
	var out bytes.Buffer
	_, err = Export(t.Context(), runs[0], &out, nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"group":"g","key":"a","value":"MQ=="}`, out.String())
}

// lines returns the lines of a text.
func lines(text string) []string { return strings.Split(text, "\n") }

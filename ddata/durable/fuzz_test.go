// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/ddata/store/storetest"
	"github.com/quorate/quorate/simulation/files"
)

// FuzzBatches gives any bytes to the decoder of payloads. What it takes is the same when it
// is encoded and decoded again.
func FuzzBatches(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 8 {
		var payload []byte
		for _, b := range storetest.RandomBatches(rng) {
			payload = appendBatch(payload, b)
		}
		f.Add(payload)
	}
	f.Add([]byte{flagsKnown, 1, 'g', 2, 'm', 'e', 2, changeDrop, 0, changePut, 1, 'k', 0})
	f.Add([]byte{0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, payload []byte) {
		decoded := table{}
		if decoded.apply(payload) != nil {
			return
		}
		var again []byte
		for _, name := range slices.Sorted(maps.Keys(decoded)) {
			g := decoded[name]
			again = appendHead(again, batchHead{group: name, wipe: g.wiped, meta: g.meta, changes: uint64(len(g.entries))})
			for key, e := range g.entries {
				again = appendChange(again, key, e)
			}
		}
		second := table{}
		if err := second.apply(again); err != nil {
			t.Fatal(err)
		}
		for name, g := range decoded {
			s := second[name]
			if s == nil || s.wiped != g.wiped || string(s.meta) != string(g.meta) || !maps.EqualFunc(s.entries, g.entries, sameEntry) {
				t.Fatalf("the group %q differs", name)
			}
		}
	})
}

func sameEntry(a, b entry) bool { return a.dropped == b.dropped && string(a.value) == string(b.value) }

// FuzzLog reads any bytes behind the head of a log, strictly and as far as possible.
// Whatever is read strictly is read by the other too, and nothing that one refuses is
// an end of the process.
func FuzzLog(f *testing.F) {
	const tag = 42
	rng := rand.New(rand.NewPCG(2, 2))
	var frames []byte
	for n := range uint64(3) {
		b := begin(nil)
		for _, batch := range storetest.RandomBatches(rng) {
			b = appendBatch(b, batch)
		}
		frames = append(frames, newFraming(tag).end(b, batchFrame, n)...)
	}
	f.Add(frames, false)
	f.Add(frames, true)
	f.Add(frames[:len(frames)-5], false)
	f.Add(frames[20:], true)
	f.Add([]byte("QDFBQDFB"), false)
	f.Fuzz(func(t *testing.T, body []byte, sealed bool) {
		d := newTray(nil)
		l := logFile{number: 3, tag: tag}
		w, err := createLog(d, l, "bank")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.file.WriteAt(body, logHead); err != nil {
			t.Fatal(err)
		}
		if sealed {
			l.end = logHead + int64(len(body))
		}
		strict, loose := table{}, table{}
		end, err := readLog(d, l, strict, nil)
		if _, lenient := readLog(d, l, loose, &losses{}); lenient != nil {
			t.Fatal(lenient)
		}
		if err != nil {
			return
		}
		if sealed && end != l.end {
			t.Fatalf("it ends at %d and not at %d, without an error", end, l.end)
		}
		for name, g := range strict {
			if loose[name] == nil || !maps.EqualFunc(g.entries, loose[name].entries, sameEntry) {
				t.Fatalf("the group %q differs", name)
			}
		}
	})
}

// FuzzRun reads any bytes in the place of a run.
func FuzzRun(f *testing.F) {
	d := newTray(nil)
	t := table{}
	_ = t.apply(appendBatch(nil, store.Batch{Group: "g", Meta: []byte("m"), Put: []store.Record{{Key: "a", Value: []byte("1")}, {Key: "b"}}}))
	made, err := writeRun(f.Context(), d, runSpec{name: "run-1", head: fileHead{number: 1, tag: 42, cluster: "bank"}, sources: []source{t}, groups: []string{"g"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(d.Names["run-1"].Data)
	f.Add(d.Names["run-1"].Data[:made.size/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		d := newTray(nil)
		d.Names["run-1"] = &files.Content{Data: data}
		for _, lost := range []*losses{nil, {}} {
			r, err := openFile(d, "run-1", lost)
			if err != nil {
				continue
			}
			for _, name := range r.names() {
				g, _, err := openGroup([]source{r}, name, lost)
				for ok := err == nil; ok; {
					_, ok, err = g.next()
				}
				if err != nil && lost != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// FuzzManifest parses any text. What it takes is what would be written.
func FuzzManifest(f *testing.F) {
	m := manifest{cluster: "bank \"é\n", id: 1, starts: 2, next: 9, runs: []runFile{{1, 2, 3}}, logs: []logFile{{4, 5, 6}, {7, 8, 0}}}
	f.Add(m.text())
	f.Add((&manifest{}).text())
	f.Add([]byte("quorate-ddata 2\nsum 00000000\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseManifest(text)
		if err == nil && string(m.text()) != string(text) {
			t.Fatalf("%q is written as %q", text, m.text())
		}
	})
}

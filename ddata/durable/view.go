// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/ddata/durable/internal/disk"
	"github.com/quorate/quorate/ddata/store"
)

// A view is a store as it is on disk. Opening, checking, exporting and repairing begin with one ([readView]). Opening
// and checking accept no fault; exporting and repairing read what is readable and, without a manifest, go by the heads
// of the files.

// view is what was read of a store.
type view struct {
	manifest *manifest // Nil if it could not be read, or is not there.
	cluster  string    // "" if nothing says it.
	runs     []*run    // the oldest first
	sources  []source  // the newest first
	ends     []int64   // where the logs of the manifest end
	logs     table     // what all logs of the manifest hold
	next     uint64    // above the numbers of all files
	asides   []uint64  // the numbers of the files that were put aside, in their order
}

// close closes the files of the view.
func (v *view) close() {
	for _, r := range v.runs {
		r.release()
	}
}

// readView reads manifest, logs and indexes. A directory without any file of a store gives a
// view without a manifest and without an error.
func readView(files disk.Files, lost *losses) (*view, error) {
	v := &view{logs: table{}}
	names, err := files.List()
	if err != nil {
		return nil, ioFault(files.Path(""), err)
	}
	for _, name := range names {
		for _, kind := range []string{"log-", "run-", asidePrefix} {
			if n, ok := number(name, kind); ok {
				v.next = max(v.next, n+1)
				if kind == asidePrefix {
					v.asides = append(v.asides, n)
				}
			}
		}
	}
	slices.Sort(v.asides)
	m, err := readManifest(files)
	if err == nil && m == nil && holds(names) {
		err = corrupt(files.Path(manifestName), "it is missing, and there are files that it should name")
	}
	if err != nil {
		if accepted := lost.accept(err); accepted != nil || errors.Is(err, store.ErrVersion) {
			return nil, err
		}
	}
	if m == nil {
		return v, v.readFiles(files, names, lost)
	}
	v.manifest, v.cluster, v.next = m, m.cluster, max(v.next, m.next)
	if err := v.readNamed(files, lost); err != nil {
		v.close()
		return nil, err
	}
	if err := v.foreign(files, names, lost); err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

// readNamed reads what the manifest names.
func (v *view) readNamed(files disk.Files, lost *losses) error {
	for _, named := range v.manifest.runs {
		r, err := openRun(files, named, lost)
		if err := lost.accept(err); err != nil {
			return err
		}
		if err == nil {
			v.runs = append(v.runs, r)
		}
	}
	for _, l := range v.manifest.logs {
		end, err := readLog(files, l, v.logs, lost)
		if err != nil {
			return err
		}
		v.ends = append(v.ends, end)
	}
	v.sources = append(v.sources, v.logs)
	for _, r := range slices.Backward(v.runs) {
		v.sources = append(v.sources, r)
	}
	return nil
}

// foreign refuses a log that was made after the manifest and has content: then the manifest is older than the files
// that it should name. An empty log was left by a crash.
func (v *view) foreign(files disk.Files, names []string, lost *losses) error {
	for _, name := range names {
		n, ok := number(name, "log-")
		if !ok || n < v.manifest.next {
			continue
		}
		t := table{}
		if err := readFound(files, name, t, &losses{}); err != nil || len(t) > 0 {
			return lost.accept(corrupt(files.Path(manifestName), "it is older than %s", name))
		}
	}
	return nil
}

// readFound reads a log by its own head.
func readFound(files disk.Files, name string, t table, lost *losses) error {
	f, err := files.Open(name)
	if err != nil {
		return ioFault(files.Path(name), err)
	}
	h, _, err := readHead(f)
	_ = f.Close() // It was only read.
	if err != nil {
		return lost.accept(headFault(files.Path(name), err))
	}
	_, err = readLog(files, logFile{number: h.number, tag: h.tag}, t, lost)
	return err
}

// foundSource is a source that no manifest names, with the logs whose content it has.
type foundSource struct {
	source

	from, to uint64
	whole    bool // It is a run whose index was readable.
}

// covers reports whether a run was made of other sources, which are there only because
// the process has died before they were removed.
func (f foundSource) covers(other foundSource) bool {
	return f.whole && f.from <= other.from && other.to <= f.to && (!other.whole || f.to-f.from > other.to-other.from)
}

// readFiles reads all logs and runs of the directory, as no manifest names any. A later log
// counts more than an earlier one, and a run as much as the last log that it was made of.
func (v *view) readFiles(files disk.Files, names []string, lost *losses) error {
	var all []foundSource
	for _, name := range names {
		if n, ok := number(name, "log-"); ok {
			t := table{}
			if err := readFound(files, name, t, lost); err != nil {
				return err
			}
			all = append(all, foundSource{source: t, from: n, to: n})
		}
		if _, ok := number(name, "run-"); ok {
			fault := new(losses)
			r, err := openFile(files, name, fault)
			for _, l := range fault.list {
				if err := lost.skipped(corrupt(l.File, "%s", l.Fault), l.File, l.At, l.Bytes); err != nil {
					return err
				}
			}
			if err := lost.accept(err); err != nil {
				return err
			}
			if err != nil {
				continue
			}
			v.cluster = cmp.Or(v.cluster, r.head.cluster)
			v.runs = append(v.runs, r)
			all = append(all, foundSource{source: r, from: r.head.from, to: r.head.to, whole: len(fault.list) == 0})
		}
	}
	slices.SortStableFunc(all, func(a, b foundSource) int {
		return cmp.Or(cmp.Compare(b.to, a.to), cmp.Compare(a.from, b.from))
	})
	for _, f := range all {
		if !slices.ContainsFunc(all, func(by foundSource) bool { return by.covers(f) }) {
			v.sources = append(v.sources, f.source)
		}
	}
	if v.cluster == "" {
		v.cluster = clusterOfLogs(files, names)
	}
	return nil
}

// clusterOfLogs returns the name of the cluster in the head of some log, "" if there is
// none.
func clusterOfLogs(files disk.Files, names []string) string {
	for _, name := range names {
		if _, ok := number(name, "log-"); !ok {
			continue
		}
		f, err := files.Open(name)
		if err != nil {
			continue
		}
		h, _, err := readHead(f)
		_ = f.Close() // It was only read.
		if err == nil {
			return h.cluster
		}
	}
	return ""
}

// holds reports whether there is a file of a store among the names.
func holds(names []string) bool {
	return slices.ContainsFunc(names, ofStore)
}

// ofStore reports whether a file is a log or a run by its name.
func ofStore(name string) bool {
	_, log := number(name, "log-")
	_, run := number(name, "run-")
	return log || run
}

// number returns the number in a name that has nothing else behind a prefix.
func number(name, prefix string) (uint64, bool) {
	digits, has := strings.CutPrefix(name, prefix)
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, has && err == nil && digits == strconv.FormatUint(n, 10)
}

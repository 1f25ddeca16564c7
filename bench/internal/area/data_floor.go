// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
)

// The two floors: of updates that wait for nobody, and of those that wait for a disk.

// measureMap measures how often the counters of a map behind a lock are raised.
func measureMap(ctx context.Context, s rig.Spec, _ *rig.Link) (figure.Outcome, error) {
	began := time.Now() // The clock of the marks runs from here.
	var mu sync.Mutex   // Guards counters.
	counters := map[string]uint64{}
	keys := keysOf(s)
	sum := func(context.Context) (m rig.Mark, err error) {
		mu.Lock()
		defer mu.Unlock()
		for _, n := range counters {
			m.Totals.Received += n
		}
		m.At = time.Since(began)
		return m, nil
	}
	return rig.Flood{Senders: s.Senders, Time: s.Time, Mark: sum, Send: func(_ context.Context, sender uint32, stop *atomic.Bool) (n uint64, err error) {
		for i := int(sender); !stop.Load(); i += s.Senders {
			name := keys[i%len(keys)].Name()
			mu.Lock()
			counters[name]++
			mu.Unlock()
			n++
		}
		return n, nil
	}}.Run(ctx)
}

// measureDisk measures how many records of one size a file takes that has a batch of them
// on the disk before the next begins.
func measureDisk(ctx context.Context, s rig.Spec, _ *rig.Link) (out figure.Outcome, err error) {
	began := time.Now() // The clock of the marks runs from here.
	dir, err := os.MkdirTemp("", "bench-data-")
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var written atomic.Uint64
	batch := make([]byte, s.Size*s.Senders)
	return rig.Flood{Senders: 1, Time: s.Time, Mark: func(context.Context) (rig.Mark, error) {
		return rig.Mark{At: time.Since(began), Totals: rig.Totals{Received: written.Load()}}, nil
	}, Send: func(_ context.Context, _ uint32, stop *atomic.Bool) (n uint64, err error) {
		for !stop.Load() {
			if _, err := file.Write(batch); err != nil {
				return n, err
			}
			if err := file.Sync(); err != nil {
				return n, err
			}
			n += uint64(s.Senders)
			written.Store(n)
		}
		return n, nil
	}}.Run(ctx)
}

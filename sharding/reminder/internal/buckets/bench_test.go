// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package buckets_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/reminder/internal/buckets"
	"github.com/quorate/quorate/sharding/state/store"
)

// million is all buckets of a cluster, with their store, in one place.
type million struct {
	buckets []*buckets.Bucket
	records [][]store.Record
	now     machine.Now
	saves   int
	written int // Bytes.
	asked   uint64
}

func (m *million) step(b int, in any) (fired []buckets.Deliver) {
	var out buckets.Outbox
	m.buckets[b].Step(m.now, in, &out)
	for len(out.Save) > 0 || len(out.Open) > 0 {
		s, opens := out.Save, out.Open
		fired = append(fired, out.Deliver...)
		out = buckets.Outbox{}
		for _, p := range opens {
			m.buckets[b].Step(m.now, buckets.OpenResult{Page: p, Record: m.records[b][p]}, &out)
		}
		for _, save := range s {
			r := &m.records[b][save.Page]
			if len(save.Events) == 0 {
				r.Snapshot, r.Events = save.Snapshot, nil
			}
			r.Events = append(r.Events, save.Events...)
			m.saves++
			m.written += len(save.Snapshot.Bytes)
			for _, e := range save.Events {
				m.written += len(e.Bytes)
			}
			m.buckets[b].Step(m.now, buckets.SaveResult{Page: save.Page}, &out)
		}
	}
	return append(fired, out.Deliver...)
}

// start starts all buckets on what the store has.
func (m *million) start() {
	m.buckets = nil
	for b := range buckets.Buckets {
		m.buckets = append(m.buckets, buckets.New(buckets.Config{
			Pages: buckets.Pages, InFlight: 64, RetryMin: time.Second, RetryMax: time.Minute, ReopenMin: time.Second, ReopenMax: time.Minute,
		}))
		m.step(b, buckets.Tick{})
	}
}

// set sets a reminder of 64 bytes of payload, due within an hour.
func (m *million) set(i int) {
	id := fmt.Sprintf("entity-%07d", i)
	m.asked++
	a := buckets.Ask{ID: m.asked, Op: buckets.Set, Reminder: buckets.Reminder{
		Key: buckets.Key{Kind: "account", ID: id, Name: "interest"}, Due: m.now.Wall.UnixMilli() + 1000 + int64(i*7919%3_600_000),
		Payload: make([]byte, 64),
	}}
	var b int
	b, a.Page = buckets.Place(a.Reminder.Kind, id)
	m.step(b, a)
}

func newMillion(n int) *million {
	m := &million{now: machine.Now{Mono: 1, Wall: time.Unix(1_800_000_000, 0)}}
	for range buckets.Buckets {
		m.records = append(m.records, make([]store.Record, buckets.Pages))
	}
	m.start()
	for i := range n {
		m.set(i)
	}
	return m
}

// The memory of a million reminders, what a change costs among them in time and in bytes that are
// written, how long it takes to read them all again, and to deliver them all.
func BenchmarkAMillion(b *testing.B) {
	const n = 1_000_000
	m := newMillion(n)
	kept := keep(m.records)
	m.buckets = nil
	heap := func() float64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return float64(s.HeapAlloc)
	}
	b.Run("load", func(b *testing.B) {
		before := heap()
		for b.Loop() {
			m.start()
		}
		b.ReportMetric((heap()-before)/n, "heap-B/reminder")
	})
	b.Run("set", func(b *testing.B) {
		m.start()
		m.saves, m.written = 0, 0
		i := 0
		for b.Loop() {
			m.set(i % n)
			i++
		}
		b.ReportMetric(float64(m.written)/float64(i), "written-B/op")
		b.ReportMetric(float64(m.saves)/float64(i), "saves/op")
	})
	b.Run("fire", func(b *testing.B) {
		fired := 0
		m.written = 0
		for b.Loop() {
			b.StopTimer()
			m.records = keep(kept)
			m.start()
			m.now.Wall = m.now.Wall.Add(2 * time.Hour)
			b.StartTimer()
			for bucket := range m.buckets {
				for under := m.step(bucket, buckets.Tick{}); len(under) > 0; under = under[1:] {
					under = append(under, m.step(bucket, buckets.Delivered{ID: under[0].ID})...)
					fired++
				}
			}
		}
		require.Zero(b, fired%n)
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(fired), "ns/reminder")
		b.ReportMetric(float64(m.written)/float64(fired), "written-B/reminder")
	})
}

// keep returns records that can be changed without those that are given.
func keep(records [][]store.Record) [][]store.Record {
	kept := make([][]store.Record, len(records))
	for b := range records {
		for _, r := range records[b] {
			r.Events = slices.Clip(r.Events)
			kept[b] = append(kept[b], r)
		}
	}
	return kept
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && postgres && unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// The devices, as the clients of the product: each client plays some hundred of them, one after the
// other, without end. The load keeps a book of what was acknowledged, and of every answer that was no
// success; a reading whose answer was none is sent again with its number until it is acknowledged.

const (
	devices = 10_000
	clients = 40
	// pace is between the requests of a client, at least.
	pace = 25 * time.Millisecond
	// requestTimeout is how long a client waits for an answer.
	requestTimeout = 45 * time.Second

	// outcomeWrong is that of a reading whose answer has another count or value.
	outcomeWrong = "wrong"
)

// deviceBook is what one device has sent. It belongs to the client that plays the device, and can be
// read when the load has stopped; sent can be read at any time.
type deviceBook struct {
	id           string
	acknowledged uint64       // The readings 1 to this one.
	sum          float64      // Of their values.
	sent         atomic.Int64 // When the last acknowledged reading was sent, in Unix nanoseconds.
}

// failure is an answer that was no success.
type failure struct {
	sent     time.Time
	took     time.Duration
	device   string
	sequence uint64
	status   int    // 0: there was none.
	outcome  string // What became of the reading.
	text     string
}

func (f failure) String() string {
	return fmt.Sprintf("%s #%d, sent %s, %v: status %d, %s: %s", f.device, f.sequence, f.sent.Format("15:04:05.000"), f.took, f.status, f.outcome, f.text)
}

// load is all clients.
type load struct {
	url    string
	client *http.Client
	books  []deviceBook

	mu       sync.Mutex
	failures []failure
	requests int           // Since the last figures.
	longest  time.Duration // Of their answers.
}

// newLoad returns clients of a balancer.
func newLoad(url string) *load {
	l := &load{url: url, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}, books: make([]deviceBook, devices)}
	for i := range l.books {
		l.books[i].id = fmt.Sprint("device-", i)
	}
	return l
}

// run sends readings until ctx ends, and what was begun by then is acknowledged or has failed once more,
// or until broken ends: then it waits for no answer.
func (l *load) run(ctx, broken context.Context) {
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			ticks := time.NewTicker(pace)
			defer ticks.Stop()
			for i := c; ctx.Err() == nil; i = (i + clients) % devices { // Each device belongs to one client, since clients divide devices.
				<-ticks.C
				l.measure(ctx, broken, &l.books[i], ticks.C)
			}
		})
	}
	all.Wait()
}

// measure sends the next reading of a device until it is acknowledged, once more at most when ctx has
// ended. An answer that is wrong is final.
func (l *load) measure(ctx, broken context.Context, d *deviceBook, tick <-chan time.Time) {
	sequence := d.acknowledged + 1
	value := float64(sequence%50 + 1) // A whole number, so that sums are exact.
	for {
		last, sent := ctx.Err() != nil, time.Now()
		failed := l.post(broken, d.id, sequence, value)
		took := time.Since(sent)
		l.count(took)
		if failed == nil {
			d.acknowledged, d.sum = sequence, d.sum+value
			d.sent.Store(sent.UnixNano())
			return
		}
		failed.sent, failed.took, failed.device, failed.sequence = sent, took, d.id, sequence
		l.mu.Lock()
		l.failures = append(l.failures, *failed)
		l.mu.Unlock()
		if last || failed.outcome == outcomeWrong {
			return
		}
		<-tick
	}
}

// count counts a request.
func (l *load) count(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests, l.longest = l.requests+1, max(l.longest, took)
}

// post sends a reading. Nil says that it was acknowledged, and counted once.
func (l *load) post(ctx context.Context, id string, sequence uint64, value float64) *failure {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout) //quorate:realtime So long a device waits.
	defer cancel()
	body := fmt.Appendf(nil, `{"sequence": %d, "value": %v}`, sequence, value)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/devices/"+id+"/readings", bytes.NewReader(body))
	if err != nil {
		return &failure{outcome: outcomeNothing, text: err.Error()}
	}
	response, err := l.client.Do(request)
	if err != nil {
		return &failure{outcome: outcomeUnknown, text: err.Error()}
	}
	defer func() { _ = response.Body.Close() }() // It was read.
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return &failure{status: response.StatusCode, outcome: outcomeUnknown, text: err.Error()}
	}
	var answer device
	if response.StatusCode != http.StatusOK {
		return &failure{status: response.StatusCode, outcome: response.Header.Get(outcomeHeader), text: string(text)}
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Count != sequence || answer.Sequence != sequence || answer.Last != value {
		return &failure{status: response.StatusCode, outcome: outcomeWrong, text: string(text)}
	}
	return nil
}

// allSentSince reports whether each device has had a reading acknowledged that it has sent since a time.
func (l *load) allSentSince(since time.Time) bool {
	for i := range l.books {
		if l.books[i].sent.Load() < since.UnixNano() {
			return false
		}
	}
	return true
}

// failed returns the answers since a time that were no success; the first of them as a text, too.
func (l *load) failed(since time.Time) (failures []failure, first string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.failures {
		if !f.sent.Before(since) {
			failures = append(failures, f)
		}
	}
	if len(failures) > 0 {
		first = failures[0].String()
	}
	return failures, first
}

// figures tells what clients have seen since the last call.
func (l *load) figures() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := fmt.Sprintf("%d requests, the longest took %v", l.requests, l.longest.Round(time.Millisecond))
	l.requests, l.longest = 0, 0
	return text
}

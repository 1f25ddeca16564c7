// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/examples/bank"
)

// The sender begins transfers at a fixed rate ([load.send]); each is repeated over other
// nodes until it is answered ([load.persist]), and its times are noted for the phases
// ([load.measure]). Reads of all balances, the end of the load and its figures follow.

// maxInFlight bounds the transfers that wait for an answer. At 300 a second it
// is reached after 20 s without one, twice as long as a failover may take; the
// load then pauses, and the summary says how often.
const maxInFlight = 6000

// retryAfter is the pause before a transfer is tried on another node.
const retryAfter = 50 * time.Millisecond

// told is what a client was told about a transfer.
type told struct {
	bank.Transfer
	receipt bank.Receipt
}

// load sends transfers at a steady rate and remembers the answers.
type load struct {
	processes *nodeProcesses
	accounts  int
	rate      int
	rnd       *rand.Rand // Of the demo's own goroutine.

	cancel  context.CancelFunc // Ends the goroutines of start; nil before that.
	stop    chan struct{}
	stopped sync.Once
	pending sync.WaitGroup // Counts the sender, and every transfer without an answer.
	slots   chan struct{}  // One for each transfer under way; maxInFlight in all.

	mu      sync.Mutex
	begun   time.Time
	asked   map[string]bool // The ids of all transfers that were ever sent.
	told    []told
	waits   []time.Duration // Waiting times of the transfers answered since the last look.
	longest time.Duration
	paused  int
	again   int // Transfers answered at a second or later try.
	late    []lateAnswer

	// Moments since begun, for the phases.
	spans   []span
	failed  []failure
	retried []time.Duration // When a request that was answered in the end first failed.

	unanswered int // Transfers given up when the demo ended before their answer.
}

// failure is an answer that reports a failed ask.
type failure struct {
	at   time.Duration
	node string
	what string
}

// newLoad returns a load that has not started.
func newLoad(seed uint64, accounts, rate int, f *nodeProcesses) *load {
	return &load{
		processes: f, accounts: accounts, rate: rate, rnd: rand.New(rand.NewPCG(seed, 2)),
		begun: time.Now(), asked: map[string]bool{}, stop: make(chan struct{}), slots: make(chan struct{}, maxInFlight),
	}
}

// account names the i-th account.
func account(i int) string { return fmt.Sprintf("acct-%04d", i) }

// since is the time since the load was made.
func (l *load) since() time.Duration { return time.Since(l.begun) }

// start begins to send. Its goroutines end with finish or close.
func (l *load) start(ctx context.Context, s *printer) {
	ctx, l.cancel = context.WithCancel(ctx)
	// Owned by the load; ends with stop, finish waits for it.
	l.pending.Go(func() {
		l.send(ctx)
	})
	// Owned by the load; ends with stop or ctx.
	go s.watch(ctx, l)
}

// send begins the transfers that are due at every tick: as many as the rate demands since
// the start, so that a late tick is made up for.
func (l *load) send(ctx context.Context) {
	rnd := rand.New(rand.NewPCG(l.rnd.Uint64(), 3))
	tick := time.NewTicker(time.Second / time.Duration(l.rate))
	defer tick.Stop()
	begun, n := time.Now(), 0
	for {
		select {
		case <-l.stop:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for due := due(time.Since(begun), l.rate); n < due; n++ {
			l.begin(ctx, rnd, n)
		}
	}
}

// due is how many transfers should have begun after a time.
func due(after time.Duration, rate int) int { return int(after.Seconds() * float64(rate)) }

// begin starts the n-th transfer, unless too many wait for an answer.
func (l *load) begin(ctx context.Context, rnd *rand.Rand, n int) {
	from := rnd.IntN(l.accounts)
	to := (from + 1 + rnd.IntN(l.accounts-1)) % l.accounts
	t := bank.Transfer{ID: fmt.Sprintf("t-%06d", n), From: account(from), To: account(to), Cents: 1 + rnd.Int64N(5000)}
	first := rnd.IntN(1 << 20)
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.slots <- struct{}{}:
	default:
		l.paused++
		return
	}
	l.asked[t.ID] = true
	// Owned by the load; ends with its answer or ctx, finish waits for it.
	l.pending.Go(func() {
		defer func() { <-l.slots }()
		l.transfer(ctx, t, first)
	})
}

// transfer repeats one transfer, over one node after the other, until it is
// answered.
func (l *load) transfer(ctx context.Context, t bank.Transfer, first int) {
	var receipt bank.Receipt
	sent, err := l.persist(ctx, first, http.MethodPost, "/transfers", t, &receipt)
	if err != nil { // The demo is over.
		l.mu.Lock()
		defer l.mu.Unlock()
		l.unanswered++
		l.spans = append(l.spans, span{t.From, sent.first, noAnswer})
		return
	}
	l.note(told{t, receipt})
	l.measure(t, receipt, sent)
}

// attemptSpan is the span of time in which a request was sent: from the first attempt to the last one.
type attemptSpan struct{ first, last time.Duration }

// persist repeats a request, over one node after the other, until it is
// answered.
func (l *load) persist(ctx context.Context, first int, method, path string, body, into any) (attemptSpan, error) {
	now := l.since()
	sent := attemptSpan{now, now}
	var broke time.Duration
	for attempt := first; ; attempt++ {
		err := l.ask(ctx, attempt, method, path, body, into)
		if err == nil {
			if attempt > first {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.retried = append(l.retried, broke)
			}
			return sent, nil
		}
		if attempt == first {
			broke = l.since()
		}
		if err := sleep(ctx, retryAfter); err != nil {
			return sent, err
		}
		sent.last = l.since()
	}
}

// note remembers an answer.
func (l *load) note(t told) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, t)
}

// measure notes how long the two accounts of a transfer took to answer. The paying one,
// which is asked first, took as long as the receipt says, the other one the rest. After a
// failed try it is not known which of them had not answered: then the other one counts as
// asked from the beginning.
func (l *load) measure(t bank.Transfer, receipt bank.Receipt, sent attemptSpan) {
	now := l.since()
	paid := min(sent.last+receipt.PaidAfter, now)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits = append(l.waits, now-sent.first)
	l.longest = max(l.longest, now-sent.first)
	l.spans = append(l.spans, span{t.From, sent.first, paid})
	if sent.first != sent.last {
		l.again++
	}
	if receipt.Refused {
		return
	}
	since := sent.first
	if sent.first == sent.last {
		since = paid
	}
	l.spans = append(l.spans, span{t.To, since, now})
}

// refusal is an answer other than 200: the node says that its ask has failed.
type refusal string

// Error returns what the node said.
func (r refusal) Error() string { return string(r) }

// ask sends one request to the node that attempt chooses.
func (l *load) ask(ctx context.Context, attempt int, method, path string, body, into any) error {
	nodes := l.processes.ready()
	if len(nodes) == 0 {
		return errors.New("no node to ask")
	}
	p := nodes[attempt%len(nodes)]
	ctx, done := p.begin(ctx)
	defer done()
	err := l.request(ctx, p, method, path, body, into)
	if r, failed := errors.AsType[refusal](err); failed {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failed = append(l.failed, failure{l.since(), p.name, string(r)})
	}
	return err
}

// request sends one request to one node.
func (l *load) request(ctx context.Context, p *process, method, path string, body, into any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+p.HTTP+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	resp, err := l.processes.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<12)) // As much as can be read is enough.
		return refusal(fmt.Sprintf("%s: %s", resp.Status, bytes.TrimSpace(why)))
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// sweep asks every account for its balance until all have answered, and
// returns how long that took.
func (l *load) sweep(ctx context.Context) (time.Duration, error) {
	at := time.Now()
	queue := make(chan int, l.accounts) // It has room for all, so that it can be closed at once.
	for i := range l.accounts {
		queue <- i
	}
	close(queue)
	var workers sync.WaitGroup
	for w := range 64 {
		// Owned by sweep, which waits for it; ends with the queue or ctx.
		workers.Go(func() {
			for i := range queue {
				l.read(ctx, account(i), w+i)
			}
		})
	}
	workers.Wait()
	return time.Since(at), context.Cause(ctx)
}

// read asks for one balance until there is an answer.
func (l *load) read(ctx context.Context, id string, first int) {
	var balance struct{ Cents int64 }
	sent, err := l.persist(ctx, first, http.MethodGet, "/accounts/"+id, nil, &balance)
	to := l.since()
	if err != nil {
		to = noAnswer
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spans = append(l.spans, span{id, sent.first, to})
}

// finish stops sending and waits until every transfer is answered.
func (l *load) finish(ctx context.Context) error {
	l.close()
	l.pending.Wait()
	return context.Cause(ctx)
}

// abandon ends the load without waiting for answers, and reports whether it had
// started at all.
func (l *load) abandon() bool {
	l.close()
	if l.cancel == nil {
		return false
	}
	l.cancel()
	l.pending.Wait()
	return true
}

// close stops sending.
func (l *load) close() { l.stopped.Do(func() { close(l.stop) }) }

// pace is the traffic of the last second.
type pace struct {
	operations int
	p50, p99   time.Duration
	waiting    int
}

// look returns the traffic since the last look.
func (l *load) look() pace {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.waits)
	p := pace{operations: len(l.waits), waiting: len(l.slots)}
	if n := len(l.waits); n > 0 {
		p.p50, p.p99 = l.waits[n/2], l.waits[n*99/100]
	}
	l.waits = l.waits[:0]
	return p
}

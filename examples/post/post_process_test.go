// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && unix

package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/patience"
)

// What a cluster does by itself, on real processes that are killed, stopped, drained and restarted while operators
// change how many shards and counters there are: jobs, boxes that are remembered, states, reminders, and deliveries
// with a queue on disk. The order of the phases comes from the seed. At the end everything that was promised must be
// there, once.

// seedVariable is the environment variable with another seed.
const seedVariable = "POST_SEED"

// trouble is something that happens to the town.
type trouble struct {
	*town

	counters   int             // How many there are to be.
	stoodStill map[string]bool // The nodes that were stopped and went on.
	shards     int
	read       int64 // How far the ledger was audited.
}

func TestAPostOfficeKeepsItsPromises(t *testing.T) {
	t.Parallel() // Tests of clusters mostly wait.
	w := newTrouble(t, "")
	w.goThrough(map[string]func(){
		"drain": w.drained, "rescale": w.rescaled, "reshard": w.resharded, "freeze": w.frozen, "restart": w.restarted, "outage": w.storeIsDown,
		"end": w.allKilled,
	})
}

// The same with a lease for each shard, which a killed or stopped node holds until its time is over. The number of
// shards of such kinds is not changed.
func TestAPostOfficeWithLeasesKeepsItsPromises(t *testing.T) {
	t.Parallel()
	w := newTrouble(t, `sharding: {leases: {store: file, ttl: 10s, renew-interval: 1s}}
lease-file: {directory: leases}
`)
	w.goThrough(map[string]func(){"drain": w.drained, "freeze": w.frozen, "restart": w.restarted, "end": w.allKilled})
}

// newTrouble starts a town with the seed of the environment, 1 if there is none.
func newTrouble(t *testing.T, settings string) *trouble {
	t.Helper()
	seed := uint64(1)
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	return &trouble{town: newTown(t, seed, settings), counters: atFirst, shards: shards, stoodStill: map[string]bool{}}
}

// goThrough has everything happen, in an order that the seed draws, while people come, and looks then whether all
// promises are kept.
func (w *trouble) goThrough(phases map[string]func()) {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	var people sync.WaitGroup
	people.Go(func() { w.people(ctx) })
	end := sync.OnceFunc(func() { stop(); people.Wait() })
	defer end()
	w.work()
	order := slices.Sorted(maps.Keys(phases))
	w.rnd.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	for _, phase := range order {
		w.note("phase %s", phase)
		phases[phase]()
		w.settle()
		w.all()
	}
	end()
	w.kept()
}

// drained has a node host nothing for a while.
func (w *trouble) drained() {
	at := w.rnd.IntN(nodes)
	w.note("node %d is drained", at)
	w.eventually("the drain", func() string {
		var state cluster.Draining
		if err := w.operate(at, "/v1/drain/begin?wait=5", cluster.DrainOperation, &state); err != nil {
			return err.Error()
		}
		if len(state.Hosts) > 0 {
			return fmt.Sprintf("it still hosts %v", state.Hosts)
		}
		return ""
	})
	require.NoError(w.t, w.operate(at, "/v1/drain/end", cluster.UndrainOperation, new(cluster.Draining)))
}

// rescaled changes the number of counters while a node is killed, until one change has come to its end.
func (w *trouble) rescaled() {
	asked, victim := w.two()
	w.counters = 3 + w.rnd.IntN(maxCounters-3)
	w.note("node %d is asked for %d counters", asked, w.counters)
	changed := make(chan string, 1)
	go func() { // Ends within twice the limit of a request.
		changed <- w.rescale(asked)
	}()
	//quorate:realtime The moment of the fault is drawn.
	<-time.After(time.Duration(w.rnd.IntN(100)) * time.Millisecond)
	w.kill(victim)
	w.note("the change has ended: %q", <-changed)
	w.gone(victim)
	w.start(victim)
	w.settle()
	w.eventually("the change", func() string { return w.rescale(asked) })
	w.work()
}

// work waits until one postmaster and the counters are at work. A look at a moment in which one of them moves shows
// two.
func (w *trouble) work() {
	w.t.Helper()
	w.eventually("the work", func() string { return w.atWork(w.counters) })
}

// rescale asks a node for the counters, and returns why they are not there.
func (w *trouble) rescale(asked int) string {
	ctx := patience.Expiring(w.t, 2*requestTimeout)
	if status, said := post(ctx, w.node(asked).HTTP, fmt.Sprintf("/counters/%d", w.counters)); status != http.StatusOK {
		return said
	}
	return ""
}

// two returns two nodes.
func (w *trouble) two() (one, other int) {
	one = w.rnd.IntN(nodes)
	return one, (one + 1 + w.rnd.IntN(nodes-1)) % nodes
}

// resharded changes the number of shards of the boxes while a node is killed, which comes back with the number that
// its program has had all along.
func (w *trouble) resharded() {
	asked, victim := w.two()
	w.shards = 30 + w.rnd.IntN(60)
	w.note("node %d is asked for %d shards", asked, w.shards)
	w.eventually("the begin of the change", func() string { // What was remembered may still be taken over.
		path := fmt.Sprintf("/v1/kinds/%s/reshard?shards=%d", kind, w.shards)
		if err := w.operate(asked, path, cluster.ReshardOperation, new(cluster.KindReshard)); err != nil {
			return err.Error()
		}
		return ""
	})
	//quorate:realtime The moment of the fault is drawn.
	<-time.After(time.Duration(w.rnd.IntN(2000)) * time.Millisecond)
	w.kill(victim)
	w.gone(victim)
	w.start(victim)
	w.settle()
	w.eventually("the end of the change", func() string {
		for i := range nodes {
			var state cluster.KindReshard
			if err := w.operate(i, "/v1/kinds/"+kind+"/resharding", "", &state); err != nil {
				return err.Error()
			}
			if state.Shards != w.shards || state.Resharding != nil || state.TakingOver {
				return fmt.Sprintf("node %d says %+v", i, state)
			}
		}
		return ""
	})
}

// frozen stops a node until the others have gone on without it. When it goes on it ends by itself.
func (w *trouble) frozen() {
	at := w.rnd.IntN(nodes)
	w.note("node %d stands still", at)
	n := w.close(at)
	require.NoError(w.t, n.Cmd.Process.Signal(syscall.SIGSTOP))
	w.gone(at)
	//quorate:realtime So long it stands still.
	<-time.After(2 * time.Second) // Others are at work in its place.
	w.stoodStill[n.Node] = true
	w.note("node %d goes on", at)
	require.NoError(w.t, n.Cmd.Process.Signal(syscall.SIGCONT))
	w.ended(n, cluster.ExitDown)
	w.start(at)
}

// storeIsDown has the store of states fail for a while. What nobody was promised meanwhile need not be kept.
func (w *trouble) storeIsDown() {
	const states = "states"
	there, away := filepath.Join(w.path("journal"), states), filepath.Join(w.path("journal"), "away")
	require.NoError(w.t, os.Rename(there, away))
	<-time.After(4 * time.Second) //quorate:realtime So long it is away.
	require.NoError(w.t, os.Rename(away, there))
	w.work() // Jobs need no store.
}

// restarted restarts all nodes, one after the other.
func (w *trouble) restarted() {
	for _, i := range w.rnd.Perm(nodes) {
		w.leave(i)
		w.start(i)
		w.settle()
	}
}

// allKilled kills all nodes at one moment, and starts them again: the numbers of shards and counters are those of the
// program then.
func (w *trouble) allKilled() {
	w.read = w.audited(w.read, w.stoodStill)
	for i := range nodes {
		w.kill(i)
	}
	w.read = w.audited(w.read, w.stoodStill)
	w.counters, w.shards = atFirst, shards
	w.startAll()
}

// kept requires that all promises are kept.
func (w *trouble) kept() {
	w.promised.mu.Lock()
	defer w.promised.mu.Unlock()
	p := &w.promised
	w.note("%d letters, %d in doubt, %d reminders; refused: %v", len(p.letters), len(p.doubtful), len(p.reminders), p.failed)
	var has map[string]box
	w.eventually("every letter and reminder", func() string {
		has = w.all()
		for letter, id := range p.letters {
			if has[id].Letters[letter] == 0 {
				return letter + " is not in " + id
			}
		}
		for name, id := range p.reminders {
			if has[id].Reminders[name] == 0 {
				return id + " was not reminded of " + name
			}
		}
		return ""
	})
	for id, b := range has {
		for letter, times := range b.Letters {
			require.Equal(w.t, 1, times, "%s is in %s", letter, id)
			require.True(w.t, p.letters[letter] == id || p.doubtful[letter] == id, "%s is in %s, and was never sent there", letter, id)
		}
	}
	w.allRun()
	w.audited(w.read, w.stoodStill)
	w.work()
}

// all waits until every box answers, and returns what they have.
func (w *trouble) all() map[string]box {
	w.t.Helper()
	has := map[string]box{}
	w.eventually("an answer of every box", func() string {
		for id := range boxes {
			id := fmt.Sprintf("box-%d", id)
			b, err := w.boxOf(0, id)
			if err != nil {
				return err.Error()
			}
			has[id] = b
		}
		return ""
	})
	return has
}

// allRun requires that all boxes run, after a restart of which nobody has sent them anything.
func (w *trouble) allRun() {
	w.allKilled()
	w.settle()
	w.eventually("all boxes", func() string {
		var all living
		if err := w.node(0).Get(w.t.Context(), "/boxes", &all); err != nil {
			return err.Error()
		}
		if len(all.Boxes) < boxes || len(all.Missing) > 0 {
			return fmt.Sprintf("%d boxes run; %v", len(all.Boxes), all.Missing)
		}
		return ""
	})
}

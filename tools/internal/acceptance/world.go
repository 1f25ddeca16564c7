// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/sharding"
	states "github.com/quorate/quorate/sharding/state/store"
)

// A [world] has machines, on which nodes run, programs, and what was found. [Run] is one run from its beginning to
// its end. What the operator does is in operator.go, each program has a file of its own.

const (
	// NodesLeast is how many nodes a run has at least: one of them may be lost at any time.
	NodesLeast = 3
	// MaxNodes is how many are drawn at most.
	MaxNodes = 6
	// events is how many things the operator does in a run.
	events = 8
	// seedsListed is how many machines are in the list of seed nodes.
	seedsListed = 3
	// settled is how long the cluster is left alone before programs judge: retries and reminders have had their time
	// then.
	settled = time.Minute
	// notes is how many of the last notes are told of a run that found something.
	notes = 120
)

// A program is what a user runs on a cluster. Its users ask and are told; at the end it judges by that alone.
type program interface {
	// join starts what the program has on each node.
	join(n *clustertest.Node) error
	// work does what users do, until ctx ends.
	work(ctx context.Context)
	// judge says to the world what is not as it was told, once faults are over and everything has settled.
	judge(ctx context.Context)
}

// A keeper is a program whose users were told what a stop of all nodes ends, and what a backup brings back.
type keeper interface {
	// ended says that all nodes have ended at once: what was in memory alone is gone.
	ended()
	// copied says that all disks and stores are copied, while no node runs. What it returns is called when
	// these copies have been put back: what came after them is gone.
	copied() (restored func())
}

// A machine has an address, a disk and a file, which outlive the node that runs on it.
type machine struct {
	address string
	gateway string // For clients; empty: none.
	seeds   []string
	disk    *store.Memory
	dir     string
	node    *clustertest.Node // The last one that ran there; nil before the first.
}

// runs reports whether a node runs on the machine.
func (m *machine) runs() bool { return m.node != nil && m.node.Running() }

// A world is one run.
type world struct {
	testing.TB

	c        *clustertest.Cluster
	rand     *rand.Rand
	seed     uint64
	began    time.Time
	machines []*machine
	programs []program
	states   *faultyStore
	strategy *faultyStrategy // Nil: the built-in one decides.
	dirs     string

	mu    sync.Mutex
	live  []*clustertest.Node // Those that a user may talk to.
	said  []string
	found map[string]int // Violations, by their format: of each law the first is an error of the test.
}

// Run runs one seed on a number of nodes, inside of synctest.Test. What was not as it was told is an error of
// the test.
func Run(t testing.TB, seed uint64, nodes int) {
	t.Helper()
	w := newWorld(t, seed, nodes)
	w.use(newCounters(w), newSets(w), newRegisters(w), newAccounts(w), newDeliveries(w), newReminders(w), newRemembered(w), newWriter(w), newChat(w))
	w.play(func() {
		for range events {
			operator{w}.event()
		}
	})
}

// newWorld starts a node on each of some machines.
func newWorld(t testing.TB, seed uint64, nodes int) *world {
	t.Helper()
	w := &world{TB: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), began: time.Now(), dirs: t.TempDir(), found: map[string]int{}}
	w.states = newFaultyStore(w.source("states"))
	options := []cluster.Option{
		cluster.WithLogger(slog.New(slog.DiscardHandler)),
		cluster.WithStates("shaky", struct{}{}, func(struct{}) (states.Store, error) { return w.states, nil }),
	}
	if seed%2 == 0 {
		w.strategy = &faultyStrategy{rand: w.source("allocation")}
		options = append(options, cluster.WithSharding(sharding.WithAllocation(w.strategy)))
	}
	w.c = clustertest.Start(t, 0, clustertest.WithConfig(settings), clustertest.WithOptions(options...))
	t.Cleanup(w.tell)
	w.c.SetLatency(0, 2*time.Millisecond)
	for range nodes {
		w.next()
	}
	for _, m := range w.machines {
		m.seeds = w.listed(seedsListed)
		w.start(m)
	}
	w.whole("the first start")
	return w
}

// use runs programs on the nodes of all machines, those that start later too.
func (w *world) use(programs ...program) {
	w.programs = programs
	for _, m := range w.machines {
		w.join(m)
	}
}

// join starts what the programs have on the node of a machine.
func (w *world) join(m *machine) {
	w.Helper()
	for _, p := range w.programs {
		if err := p.join(m.node); err != nil {
			w.Fatalf("%s: %v", m.address, err)
		}
	}
}

// play has users work while something is done, and then has the programs judge.
func (w *world) play(do func()) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var working sync.WaitGroup
	for _, p := range w.programs {
		working.Go(func() { p.work(ctx) }) // Owner: play, which waits. Ends with ctx.
	}
	do()
	stop()
	working.Wait()
	w.c.Advance(settled)
	w.judge()
}

// judge has each program judge, with a limit for what it waits for.
func (w *world) judge() {
	if w.strategy != nil && !w.strategy.asked {
		w.violation("the strategy was never asked")
	}
	for _, p := range w.programs {
		ctx, cancel := context.WithTimeout(context.Background(), settled)
		p.judge(ctx)
		cancel()
	}
}

// settings are those of each node, but for its address, its list and its directory.
const settings = `
membership: {leave-timeout: 20s}
sharding: {handoff-timeout: 5s}
states: {store: shaky}
ddata:
  durable: [kept-*]
  groups: [{prefix: near-, replicas: 3}]
`

// machine makes a machine.
func (w *world) machine(address string) *machine {
	m := &machine{address: address}
	w.wipe(m)
	return m
}

// gatewayOf returns the address at which the i-th machine lets clients in, empty if it does not: those in the list of
// seed nodes do.
func gatewayOf(i int) string {
	if i >= seedsListed {
		return ""
	}
	return fmt.Sprintf("127.0.0.1:%d", 7947+i)
}

// next makes the next machine of the cluster.
func (w *world) next() *machine {
	m := w.machine(fmt.Sprintf("10.0.0.%d:7946", len(w.machines)+1))
	m.gateway = gatewayOf(len(w.machines))
	w.machines = append(w.machines, m)
	return m
}

// wipe gives a machine an empty disk.
func (w *world) wipe(m *machine) {
	m.disk = store.NewMemory(rand.NewPCG(w.rand.Uint64(), 2))
	m.dir = fmt.Sprintf("%s/%d", w.dirs, w.rand.Uint32())
}

// listed returns the addresses of the first machines, as in a list of seed nodes.
func (w *world) listed(n int) (addresses []string) {
	for _, m := range w.machines[:min(n, len(w.machines))] {
		addresses = append(addresses, m.address)
	}
	return addresses
}

// start starts a node on a machine, with its list, its disk and what the programs have on it.
func (w *world) start(m *machine) {
	w.boot(m)
	w.join(m)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live = append(w.live, m.node)
}

// boot starts a node alone.
func (w *world) boot(m *machine) {
	text := fmt.Sprintf("node: {data-dir: %q}\nmembership: {seed-nodes: [%s]}\ngateway: {address: %q, kinds: [%s]}\n",
		m.dir, strings.Join(m.seeds, ", "), m.gateway, accountKind)
	m.node = w.c.Add(clustertest.WithAddress(m.address), clustertest.WithConfig(text),
		clustertest.WithOptions(cluster.WithStore(func(_ context.Context, _, name string) (store.Store, error) { return m.disk.Open(name) })))
	w.note("%s starts, with the list %v", m.address, m.seeds)
}

// kill ends the node of a machine as a failure of the machine does.
func (w *world) kill(m *machine) {
	w.note("%s is killed", m.address)
	w.gone(m.node)
	m.disk.Crash()
	w.c.Kill(m.node)
}

// leave takes the node of a machine out of the cluster in order.
func (w *world) leave(m *machine) {
	w.note("%s leaves", m.address)
	w.gone(m.node)
	w.c.Leave(m.node)
}

// gone has nobody talk to a node any more. What is under way goes on.
func (w *world) gone(n *clustertest.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live = slices.DeleteFunc(w.live, func(o *clustertest.Node) bool { return o == n })
}

// users has a number of users of a program work, each at its own pace, until ctx ends.
func (w *world) users(ctx context.Context, name string, n int, pace time.Duration, step func(r *rand.Rand, user, k int)) {
	var working sync.WaitGroup
	for user := range n {
		r := w.source(fmt.Sprint(name, user))
		working.Go(func() { // Owner: users, which waits. Ends with ctx.
			for k := 0; sleep(ctx, r, pace); k++ {
				step(r, user, k)
			}
		})
	}
	working.Wait()
}

// any returns a node that a user may talk to, and nil while there is none.
func (w *world) any(r *rand.Rand) *clustertest.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live = slices.DeleteFunc(w.live, func(n *clustertest.Node) bool { return !n.Running() })
	if len(w.live) == 0 {
		return nil
	}
	return w.live[r.IntN(len(w.live))]
}

// whole demands that all machines run, and are a whole cluster, within the limit of the kit.
func (w *world) whole(after string) {
	w.Helper()
	var nodes []*clustertest.Node
	for _, m := range w.machines {
		if !m.runs() {
			w.violation("after %s: the node on %s has ended by itself: %v", after, m.address, m.node.Err())
			w.start(m)
		}
		nodes = append(nodes, m.node)
	}
	if err := w.c.Wait("the cluster is whole after "+after, func() error { return clustertest.Converged(nodes...) }); err != nil {
		w.violation("after %s: %v", after, err)
		w.FailNow()
	}
}

// source returns the random numbers of one user.
func (w *world) source(name string) *rand.Rand {
	h := uint64(14695981039346656037) // FNV-1a.
	for _, b := range []byte(name) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(w.seed, h))
}

// note keeps a line for the case that something is found.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, fmt.Sprintf("%8.3f s  ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

// violation says that something is not as it was told. The run goes on.
func (w *world) violation(format string, args ...any) {
	w.Helper()
	w.mu.Lock()
	w.found[format]++
	first := w.found[format] == 1
	w.mu.Unlock()
	if first {
		w.note("VIOLATION: "+format, args...)
		w.Errorf("violation: "+format, args...)
	}
}

// tell tells what had happened, if something was found.
func (w *world) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.Failed() {
		return
	}
	w.Logf("seed %d, %d machines; what happened:\n%s", w.seed, len(w.machines), strings.Join(w.said[max(0, len(w.said)-notes):], "\n"))
}

// sleep waits for a time that is drawn, and reports whether ctx has not ended meanwhile.
func sleep(ctx context.Context, r *rand.Rand, most time.Duration) bool {
	timer := time.NewTimer(time.Duration(r.Int64N(int64(most) + 1)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Nodes draws how many nodes a run has.
func Nodes(seed uint64) int {
	return NodesLeast + rand.New(rand.NewPCG(seed, 3)).IntN(MaxNodes-NodesLeast+1)
}

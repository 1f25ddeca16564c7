// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package experiments

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
)

// Three processes with a disk each write behind, and are killed one after the other while
// updates go on. Each update is of a key of its own, so that what was acknowledged is a list of
// keys. The time after which changes are on disk is so long that a process that is killed loses
// what it holds.
//
// First the test, then what it does with a process (sibling), last what such a process does
// (served): it carries out one order after the other, which it reads from its standard input,
// and answers in lines with words on its standard output.

const (
	addressVariable = "QUORATE_BEHIND_ADDRESS" // The address of a node; without it the program runs tests.
	seedsVariable   = "QUORATE_BEHIND_SEEDS"   // The seed nodes, a JSON array.
	dirVariable     = "QUORATE_BEHIND_DIR"     // The directory of the durable keys.

	keysEach = 500 // How many keys a node writes that is not killed.
	workers  = 4   // How many orders of a process are under way at a time.
)

// Nothing that was acknowledged is missing after one node was killed, after another was, and
// after all have ended in order, of which none has lost anything.
func TestKilledProcessesThatWriteBehindLoseNothing(t *testing.T) {
	f := newFamily(t)
	all := []*sibling{f.start(0), f.start(1), f.start(2)}
	f.awaitSure(all...)

	for _, victim := range []int{1, 2} {
		rest := []*sibling{all[0], all[3-victim]}
		end := f.write(keysEach, rest...)
		f.writeUntilKilled(all[victim], keysEach/2)
		end()
		f.readBack(rest...)

		acknowledged := len(f.acknowledged)
		all[victim] = f.start(victim)
		require.True(t, all[victim].first.Unsure, "the process was killed")
		require.Less(t, all[victim].first.Keys, acknowledged, "nothing was lost that could be restored")
		t.Logf("node %d was killed; %d of %d keys were on its disk", victim, all[victim].first.Keys, acknowledged)
		end = f.write(keysEach, rest...)
		f.awaitSure(all[victim])
		end()
		f.awaitSure(all...)
		f.readBack(all...)
	}

	for _, s := range all {
		s.stop()
	}
	for i := range all {
		all[i] = f.start(i)
		require.False(t, all[i].first.Unsure, "the process has ended in order")
	}
	f.awaitSure(all...)
	f.readBack(all...)
	t.Logf("%d keys were acknowledged", len(f.acknowledged))
}

// family has what outlives the processes.
type family struct {
	t         *testing.T
	dir       string
	addresses []string

	mu           sync.Mutex
	next         int
	acknowledged []int
}

func newFamily(t *testing.T) *family {
	t.Helper()
	addresses, err := harness.FreeAddresses(t.Context(), 3)
	require.NoError(t, err)
	return &family{t: t, dir: t.TempDir(), addresses: addresses}
}

// sibling is one process.
type sibling struct {
	f     *family
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Scanner
	first standing // How the durable keys stood before the node had heard of another one.
}

// startReplica starts the process with the i-th address, on the disk that it has.
func (f *family) start(i int) *sibling {
	f.t.Helper()
	program, err := os.Executable()
	require.NoError(f.t, err)
	seeds, err := json.Marshal(f.addresses)
	require.NoError(f.t, err)
	s := &sibling{f: f, cmd: exec.CommandContext(f.t.Context(), program)}
	s.cmd.Env = append(os.Environ(), addressVariable+"="+f.addresses[i], seedsVariable+"="+string(seeds),
		dirVariable+"="+filepath.Join(f.dir, fmt.Sprintf("disk-%d", i)))
	s.cmd.Stderr = f.t.Output()
	s.in, err = s.cmd.StdinPipe()
	require.NoError(f.t, err)
	out, err := s.cmd.StdoutPipe()
	require.NoError(f.t, err)
	s.out = bufio.NewScanner(out)
	require.NoError(f.t, s.cmd.Start())
	f.t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill() // The process may have ended.
			_ = s.cmd.Wait()         // It was killed.
		}
	})
	require.True(f.t, s.out.Scan(), "node %d does not start: %v", i, s.out.Err())
	require.NoError(f.t, json.Unmarshal(s.out.Bytes(), &s.first))
	return s
}

// order sends an order, and passes every answer on until the one that ends them, or until the
// process ends.
func (s *sibling) order(o order, answered func(answer)) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		return err
	}
	for s.out.Scan() {
		var a answer
		if err := json.Unmarshal(s.out.Bytes(), &a); err != nil {
			return fmt.Errorf("an answer is %q: %w", s.out.Text(), err)
		}
		if answered(a); a.End {
			return nil
		}
	}
	return cmp.Or(s.out.Err(), io.EOF)
}

// keys returns so many keys that nobody has written.
func (f *family) keys(n int) (keys []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		keys = append(keys, f.next)
		f.next++
	}
	return keys
}

// note notes an acknowledged key.
func (f *family) note(a answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !a.End && a.Fault == "" {
		f.acknowledged = append(f.acknowledged, a.Key)
	}
}

// write has each of some processes write n keys. The function that it returns waits for the
// end of that. An update of which the node does not know whether a majority has it is no fault.
func (f *family) write(n int, all ...*sibling) (end func()) {
	var writing sync.WaitGroup
	for _, s := range all {
		keys := f.keys(n)
		writing.Go(func() {
			if err := s.order(order{Write: keys}, f.note); err != nil {
				f.t.Errorf("a process that was not killed: %v", err)
			}
		})
	}
	return writing.Wait
}

// writeUntilKilled has a process write, and kills it when it has acknowledged n keys.
func (f *family) writeUntilKilled(s *sibling, n int) {
	f.t.Helper()
	said := 0
	err := s.order(order{Write: f.keys(100 * n)}, func(a answer) {
		if f.note(a); a.Fault == "" {
			said++
		}
		if said == n {
			_ = s.cmd.Process.Kill() // The process shows by its end that it was killed.
		}
	})
	require.ErrorIs(f.t, err, io.EOF, "the process was to be killed in the middle")
	var killed *exec.ExitError
	require.ErrorAs(f.t, s.cmd.Wait(), &killed)
	require.False(f.t, killed.Exited(), "%v", killed)
}

// readBack has each process read what was acknowledged, with a majority.
func (f *family) readBack(all ...*sibling) {
	f.t.Helper()
	for _, s := range all {
		read := 0
		require.NoError(f.t, s.order(order{Read: f.acknowledged}, func(a answer) {
			if a.End {
				return
			}
			require.Empty(f.t, a.Fault, "key %d was acknowledged", a.Key)
			read++
		}))
		require.Equal(f.t, len(f.acknowledged), read)
	}
}

// awaitSure waits until nodes have three replicas that count, and each has what it may have
// lost.
func (f *family) awaitSure(all ...*sibling) {
	f.t.Helper()
	for _, s := range all {
		var last standing
		patience.Eventually(f.t, func() bool {
			require.NoError(f.t, s.order(order{}, func(a answer) { last = a.Standing }))
			return last == standing{Keys: last.Keys, Present: 3}
		}, "three replicas count; the last: %+v", &last)
	}
}

// stop ends a process in order.
func (s *sibling) stop() {
	s.f.t.Helper()
	require.ErrorIs(s.f.t, s.order(order{Stop: true}, func(answer) {}), io.EOF)
	require.NoError(s.f.t, s.cmd.Wait())
}

// order tells a process what to do. Without anything it asks how the durable keys stand.
type order struct {
	Write []int `json:",omitempty"` // Keys to write, each answered when a majority has it.
	Read  []int `json:",omitempty"` // Keys to read with a majority, each answered.
	Stop  bool  `json:",omitempty"` // End in order.
}

// answer is about one key, or ends the answers to an order.
type answer struct {
	Key      int      `json:",omitempty"`
	Fault    string   `json:",omitempty"` // Why the key was not acknowledged or not read.
	End      bool     `json:",omitempty"`
	Standing standing `json:",omitzero"` // When the order has ended.
}

// standing is how the durable keys of a node stand.
type standing struct {
	Keys    int  // How many it holds.
	Unsure  bool // It may have lost what it has acknowledged.
	Present int  // How many replicas count that it reaches and that lack nothing they acknowledged.
}

// served is a node that carries out orders.
type served struct {
	*replica

	mu sync.Mutex // Held while a line is written.
}

// serve runs a node until the order to stop.
func serve(address string) error {
	ctx := context.Background() // The test kills what does not end.
	m, c := memberConfig(address), ddata.Default()
	if err := json.Unmarshal([]byte(os.Getenv(seedsVariable)), &m.Membership.SeedNodes); err != nil {
		return err
	}
	c.Dir, c.Durable, c.WriteBehind = os.Getenv(dirVariable), []string{durablePrefix + "*"}, time.Minute
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	n, err := membership.Start(ctx, m, membership.WithLogger(log), membership.WithSettings(c.Settings()...))
	if err != nil {
		return err
	}
	r, err := ddata.New(n, c, ddata.WithLogger(log), ddata.WithStore(openStore))
	if err != nil {
		return errors.Join(err, n.Close())
	}
	s := &served{replica: &replica{Node: n, data: r}}
	return errors.Join(s.obey(ctx), n.Close(), r.AwaitEnd(ctx))
}

// obey says how the durable keys stand, and carries out orders until the one to stop.
func (s *served) obey(ctx context.Context) error {
	first, err := s.stands(ctx)
	if err != nil {
		return err
	}
	if err := s.say(first); err != nil {
		return err
	}
	if err := errors.Join(s.AwaitUp(ctx), s.data.AwaitReady(ctx)); err != nil {
		return err
	}
	for orders := json.NewDecoder(os.Stdin); ; {
		var o order
		if err := orders.Decode(&o); err != nil {
			return fmt.Errorf("the parent has ended: %w", err)
		}
		if o.Stop {
			return nil
		}
		if err := errors.Join(s.each(ctx, o.Write, s.write), s.each(ctx, o.Read, s.read)); err != nil {
			return err
		}
		stands, err := s.stands(ctx)
		if err := errors.Join(err, s.say(answer{End: true, Standing: stands})); err != nil {
			return err
		}
	}
}

// say writes a line.
func (s *served) say(what any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return json.NewEncoder(os.Stdout).Encode(what)
}

// stands returns how the durable keys stand.
func (s *served) stands(ctx context.Context) (now standing, err error) {
	groups, err := s.data.Groups(ctx)
	for _, g := range groups {
		if !g.Durable {
			continue
		}
		now.Keys, now.Unsure = g.Keys, !g.Unsure.IsZero()
		for _, r := range g.Replicas {
			if r.Reachable && r.CaughtUp && !r.Apart && !r.Unsure && len(r.Sets) == 1 && r.Sets[0] == "current" {
				now.Present++
			}
		}
	}
	return now, err
}

// each does something with each of some keys, and says how it has ended.
func (s *served) each(ctx context.Context, keys []int, do func(context.Context, ddata.Key[crdt.GCounter]) error) error {
	todo := make(chan int, len(keys))
	for _, key := range keys {
		todo <- key
	}
	close(todo)
	faults := make([]error, workers)
	var working sync.WaitGroup
	for i := range workers {
		working.Go(func() {
			for key := range todo {
				a := answer{Key: key}
				if err := do(ctx, counter(durablePrefix, key)); err != nil {
					a.Fault = err.Error()
				}
				faults[i] = cmp.Or(faults[i], s.say(a))
			}
		})
	}
	working.Wait()
	return errors.Join(faults...)
}

func (s *served) write(ctx context.Context, key ddata.Key[crdt.GCounter]) error {
	return s.add(ctx, key, ddata.Majority())
}

// read reads a key, of which the counter is 1 after its only update.
func (s *served) read(ctx context.Context, key ddata.Key[crdt.GCounter]) error {
	v, err := ddata.Get(ctx, s, key, ddata.Majority())
	if err == nil && v.Value() != 1 {
		err = fmt.Errorf("the counter is %d", v.Value())
	}
	return err
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/examples/attached"
)

// The cluster's file is written, processes are started, and clients may ask a node once the
// cluster has taken it in ([nodeProcesses.admit]). The ways in which a node ends follow, and at
// last the end of all ([nodeProcesses.close]).

// nodeProcesses owns the processes of the nodes of a run.
type nodeProcesses struct {
	program, dir, journal string
	sockets               string // Directory of the sockets for operators: their paths must be short.
	ports                 *attached.Ports
	used                  int // Number of ports in use.
	printer               *printer
	client                *http.Client
	strategies            *strategies // Nil with built-in strategies.

	mu    sync.Mutex
	alive []*process // Processes that were started, and neither killed nor asked to leave.
	all   []*process
}

// maxNodes is how many addresses a run may need: five nodes, two that join, one for a
// node that froze, and one that joins while a plugin is killed.
const maxNodes = firstNodes + 4

// newNodeProcesses writes the cluster's file.
func newNodeProcesses(program, dir, journal string, plugins bool, s *printer) (*nodeProcesses, error) {
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("the node program is missing, `make demo` builds it: %w", err)
	}
	ports, err := attached.ReservePorts(maxNodes + 1)
	if err != nil {
		return nil, err
	}
	f := &nodeProcesses{
		program: program, dir: dir, journal: journal, ports: ports, printer: s,
		client: &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
	}
	if f.sockets, err = os.MkdirTemp("", "bank-operators-"); err != nil {
		ports.Close()
		return nil, err
	}
	if plugins {
		witness := fmt.Sprintf("127.0.0.1:%d", ports.Numbers[maxNodes])
		if f.strategies, err = newStrategies(filepath.Dir(program), dir, witness); err != nil {
			f.release()
			return nil, err
		}
	}
	chosen, err := f.strategies.config()
	if err == nil {
		err = os.WriteFile(f.config(), []byte(f.clusterFile()+chosen), 0o644)
	}
	if err != nil {
		f.release()
		return nil, err
	}
	return f, nil
}

// release gives back what a run has besides its processes.
func (f *nodeProcesses) release() {
	f.strategies.close()
	f.ports.Close()
	_ = os.RemoveAll(f.sockets) // It is a directory of the system for what need not stay.
}

// clusterFile returns the one file of all nodes. All of the first nodes are seed nodes:
// at most four of them ever go for good, so a new node always finds one.
func (f *nodeProcesses) clusterFile() string {
	seeds := make([]string, firstNodes)
	for i := range seeds {
		seeds[i] = f.address(i)
	}
	return fmt.Sprintf("cluster: {name: bank}\nnode: {address: %s}\nmembership:\n  seed-nodes: [%s]\n",
		f.address(0), strings.Join(seeds, ", "))
}

// config returns the path of the cluster's file.
func (f *nodeProcesses) config() string { return filepath.Join(f.dir, "cluster.yaml") }

// address returns the address of the i-th node.
func (f *nodeProcesses) address(i int) string { return fmt.Sprintf("127.0.0.1:%d", f.ports.Numbers[i]) }

// start starts a node at an address that was not used yet, and waits until it serves
// HTTP. Clients ask the node only when it is admitted.
func (f *nodeProcesses) start(ctx context.Context) (*process, error) {
	f.used++
	return f.launch(ctx, fmt.Sprintf("n%d", f.used), f.address(f.used-1))
}

// restart starts a node at the address of one that has ended.
func (f *nodeProcesses) restart(ctx context.Context, old *process) (*process, error) {
	return f.launch(ctx, old.name, old.address)
}

// launch starts a process.
func (f *nodeProcesses) launch(ctx context.Context, name, address string) (*process, error) {
	f.mu.Lock()
	log := filepath.Join(f.dir, fmt.Sprintf("%s-%d.log", name, len(f.all)+1))
	f.mu.Unlock()
	p := newProcess(name, address)
	if err := p.start(f.program, f.config(), f.journal, log, f.socketOf(p)); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.all = append(f.all, p)
	f.mu.Unlock()
	select {
	case err := <-p.Hello():
		if err != nil {
			return nil, fmt.Errorf("%s did not start, see %s: %w", name, log, err)
		}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	f.mu.Lock()
	f.alive = append(f.alive, p)
	f.mu.Unlock()
	f.printer.event("%s started", name)
	return p, nil
}

// nodes returns the nodes that are or should become members.
func (f *nodeProcesses) nodes() []*process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.alive)
}

// ready returns the nodes that clients may ask.
func (f *nodeProcesses) ready() []*process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.alive), func(p *process) bool { return !p.admitted })
}

// size is the number of nodes that should be members.
func (f *nodeProcesses) size() int { return len(f.nodes()) }

// admit waits until the cluster has taken the nodes in and each has answered
// for an account; then clients may ask them.
func (f *nodeProcesses) admit(ctx context.Context, fresh ...*process) error {
	if err := f.waitUp(ctx, f.size()); err != nil {
		return err
	}
	for _, p := range fresh {
		if err := f.waitAnswer(ctx, p); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range fresh {
		p.admitted = true
	}
	return nil
}

// forget takes a node off the list of those that clients may ask.
func (f *nodeProcesses) forget(victim *process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alive = slices.DeleteFunc(f.alive, func(p *process) bool { return p == victim })
}

// kill ends a node without warning. Clients are not told and find out by themselves.
func (f *nodeProcesses) kill(p *process) error {
	err := p.Cmd.Process.Kill()
	<-p.Ended()
	f.forget(p)
	return err
}

// terminate asks a node to leave, and waits until it has ended in order. Clients send the
// node no new requests, as with any load balancer that drains a node; earlier requests
// are still answered.
func (f *nodeProcesses) terminate(ctx context.Context, p *process) error {
	f.forget(p)
	at := time.Now()
	if err := p.terminate(); err != nil {
		return err
	}
	if err := p.ended(ctx, 0); err != nil {
		return err
	}
	f.printer.event("%s ended in order, %v later", p.name, time.Since(at).Round(10*time.Millisecond))
	return nil
}

// pick chooses the oldest node, or one that is not the oldest.
func (f *nodeProcesses) pick(ctx context.Context, oldest bool, rnd *rand.Rand) (*process, error) {
	view, err := f.members(ctx)
	if err != nil {
		return nil, err
	}
	var first *process
	var others []*process
	lowest := ^uint64(0)
	for _, p := range f.nodes() {
		m := view.find(p)
		if m == nil || m.UpNumber == 0 {
			continue
		}
		if m.UpNumber < lowest {
			if first != nil {
				others = append(others, first)
			}
			first, lowest = p, m.UpNumber
			continue
		}
		others = append(others, p)
	}
	if first == nil || len(others) == 0 {
		return nil, errors.New("too few members to choose from")
	}
	if oldest {
		return first, nil
	}
	return others[rnd.IntN(len(others))], nil
}

// close ends every process: in order where it may, by force after a time.
func (f *nodeProcesses) close() {
	defer f.release()
	f.mu.Lock()
	all := slices.Clone(f.all)
	f.mu.Unlock()
	for _, p := range all {
		_ = p.thaw()      // The process may have ended, as below.
		_ = p.terminate() // A demo that was interrupted may have left it frozen.
	}
	limit := time.After(10 * time.Second)
	for _, p := range all {
		select {
		case <-p.Ended():
		case <-limit:
			_ = p.Cmd.Process.Kill() // The process may have ended just now.
			<-p.Ended()
			limit = time.After(time.Millisecond) // The other processes get no more time either.
		}
	}
}

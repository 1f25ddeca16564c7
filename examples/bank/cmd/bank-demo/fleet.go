// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is one node.
type process struct {
	name    string // For people: n1, n2 and so on.
	address string // Of the cluster: host:port.
	http    string // Of its HTTP interface.
	cmd     *exec.Cmd
	gone    chan struct{} // Closed when it has ended.
}

// fleet owns the node processes.
type fleet struct {
	program, dir, journal string
	ports                 []int
	screen                *screen
	client                *http.Client

	mu    sync.Mutex
	alive []*process // Started, and neither killed nor asked to leave.
	all   []*process
}

// maxNodes is how many nodes a run may start.
const maxNodes = 7

// newFleet writes the cluster's file.
func newFleet(program, dir, journal string, s *screen) (*fleet, error) {
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("the node program is missing, `make demo` builds it: %w", err)
	}
	ports, err := freePorts(maxNodes)
	if err != nil {
		return nil, err
	}
	f := &fleet{
		program: program, dir: dir, journal: journal, ports: ports, screen: s,
		client: &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
	}
	return f, os.WriteFile(f.config(), []byte(f.clusterFile()), 0o644)
}

// clusterFile is the one file of all nodes. All of the first nodes are seed
// nodes: at most three of them ever go, so a new node always finds one.
func (f *fleet) clusterFile() string {
	seeds := make([]string, firstNodes)
	for i := range seeds {
		seeds[i] = f.address(i)
	}
	return fmt.Sprintf("cluster: {name: bank}\nnode: {address: %s}\nmembership:\n  seed-nodes: [%s]\n",
		f.address(0), strings.Join(seeds, ", "))
}

// config is the path of the cluster's file.
func (f *fleet) config() string { return filepath.Join(f.dir, "cluster.yaml") }

// address is where the i-th node listens.
func (f *fleet) address(i int) string { return fmt.Sprintf("127.0.0.1:%d", f.ports[i]) }

// freePorts finds n ports. They lie below the range from which systems take the
// ports of outgoing connections, so that nobody takes one before its node does.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range 1000 {
		port := 20_000 + rand.IntN(10_000)
		if slices.Contains(ports, port) {
			continue
		}
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("found no %d free ports from 20000 to 29999", n)
}

// start starts one more node and waits until it serves HTTP.
func (f *fleet) start(ctx context.Context) error {
	i := len(f.all)
	p := &process{name: fmt.Sprintf("n%d", i+1), address: f.address(i), gone: make(chan struct{})}
	log, err := os.Create(filepath.Join(f.dir, p.name+".log"))
	if err != nil {
		return err
	}
	p.cmd = exec.Command(f.program, "-config", f.config(), "-journal", f.journal) //nolint:noctx // It ends by close, not by a context: the end is the subject.
	p.cmd.Env = append(os.Environ(), "QUORATE_NODE__ADDRESS="+p.address)
	p.cmd.Stderr = log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	hello := make(chan error, 1)
	// Owned by the fleet; ends with the process, which close ends.
	go func() {
		line, err := bufio.NewReader(out).ReadBytes('\n')
		if err == nil {
			var first struct{ HTTP string }
			err = json.Unmarshal(line, &first)
			p.http = first.HTTP
		}
		hello <- err
		_ = p.cmd.Wait() // How it ended is in its log.
		_ = log.Close()
		close(p.gone)
	}()
	f.mu.Lock()
	f.all = append(f.all, p)
	f.mu.Unlock()
	select {
	case err := <-hello:
		if err != nil {
			return fmt.Errorf("%s did not start, see %s: %w", p.name, log.Name(), err)
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	f.mu.Lock()
	f.alive = append(f.alive, p)
	f.mu.Unlock()
	f.screen.event("%s started", p.name)
	return nil
}

// nodes returns the nodes that may be asked.
func (f *fleet) nodes() []*process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*process(nil), f.alive...)
}

// size is the number of nodes that should be members.
func (f *fleet) size() int { return len(f.nodes()) }

// strike takes a node off the list of those that may be asked.
func (f *fleet) strike(victim *process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, p := range f.alive {
		if p == victim {
			f.alive = append(f.alive[:i:i], f.alive[i+1:]...)
			return
		}
	}
}

// kill ends a node without warning. Clients are not told: they find out.
func (f *fleet) kill(p *process) error {
	err := p.cmd.Process.Kill()
	<-p.gone
	f.strike(p)
	return err
}

// terminate asks a node to leave.
func (f *fleet) terminate(p *process) error {
	f.strike(p)
	return p.cmd.Process.Signal(syscall.SIGTERM)
}

// pick chooses the oldest node, or one that is not the oldest.
func (f *fleet) pick(ctx context.Context, oldest bool, rnd *rand.Rand) (*process, error) {
	view, err := f.members(ctx)
	if err != nil {
		return nil, err
	}
	var first *process
	var others []*process
	lowest := ^uint64(0)
	for _, p := range f.nodes() {
		m := view.find(p.address)
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
func (f *fleet) close() {
	f.mu.Lock()
	all := append([]*process(nil), f.all...)
	f.mu.Unlock()
	for _, p := range all {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // It may have ended.
	}
	limit := time.After(10 * time.Second)
	for _, p := range all {
		select {
		case <-p.gone:
		case <-limit:
			_ = p.cmd.Process.Kill() // It may have ended just now.
			<-p.gone
			limit = time.After(time.Millisecond) // The patience is used up for the rest as well.
		}
	}
}

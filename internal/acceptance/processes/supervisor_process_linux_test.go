// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package processes_test

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/bank"
	"github.com/quorate/quorate/internal/patience"
)

// Nodes whose supervisors start them again: a city on a network that can be cut (town),
// with a place for each node (post) at which one process follows another. After those come
// waiting for one cluster, and clerks that ask wherever nodes run.

// restartAfter is how long a supervisor waits before it starts a node again, as those
// of systemd and Kubernetes do at first.
const restartAfter = time.Second

// town is a city on a network that can be cut, with a supervisor, a [post], for each node.
type town struct {
	*city

	net   network
	posts []*post
}

// newTown starts n nodes, of which the first three are seed nodes, and clerks once the
// nodes are one cluster. All other settings are the defaults.
func newTown(t *testing.T, net network, n int) (*town, *clerks) {
	t.Helper()
	const seeds = 3
	c := &town{city: &city{t: t, dir: t.TempDir()}, net: net}
	c.journal = filepath.Join(c.dir, "journal")
	c.client = &http.Client{Timeout: patience.Limit, Transport: &http.Transport{DialContext: net.dial}}
	t.Cleanup(c.client.CloseIdleConnections)
	var listed []string
	for i := range min(seeds, n) {
		listed = append(listed, net.address(i))
	}
	c.write("cluster.yaml", "cluster: {name: bank}", "node: {address: "+net.address(0)+"}",
		"membership: {seed-nodes: ["+strings.Join(listed, ", ")+"]}")
	for i := range n {
		c.posts = append(c.posts, c.supervise(i))
	}
	nodes, err := c.one()
	require.NoError(t, err)
	ids := accounts(45)
	c.readAll(ids, nodes...)
	load := c.openDesks(ids)
	load.awaitMore()
	return c, load
}

// post is the place of a node, which a supervisor starts again whenever it ends, with its
// data.
type post struct {
	town *town
	i    int

	mu    sync.Mutex // Guards the fields below.
	lives []*node    // The processes of the node so far.
	ended int        // How many of the processes have ended.
	fault error      // Why no further process is started; nil if it is.
}

// supervise starts the i-th node, and starts it again whenever it ends, until the test ends.
func (c *town) supervise(i int) *post {
	p := &post{town: c, i: i}
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	var work sync.WaitGroup
	work.Go(func() { p.run(ctx) }) // Owned by the test; ends with ctx, and the process with it.
	c.t.Cleanup(func() {
		cancel()
		work.Wait()
		for life, n := range p.lives {
			if c.t.Failed() {
				c.t.Logf("log of %s, life %d:\n%s", n.address, life+1, n.log)
			}
		}
	})
	return p
}

func (p *post) run(ctx context.Context) {
	again := time.NewTimer(0) //quorate:realtime It has the process started again.
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		if err := p.live(ctx); err != nil {
			p.mu.Lock()
			p.fault = err
			p.mu.Unlock()
			return
		}
		again.Reset(restartAfter)
	}
}

// live runs the node until its process ends.
func (p *post) live(ctx context.Context) error {
	c := p.town
	env, args := c.net.settings(p.i)
	env = append(env, "QUORATE_NODE__DATA_DIR="+filepath.Join(c.dir, fmt.Sprintf("data-%d", p.i)))
	n, err := c.spawn(c.net.address(p.i), func(cmd *exec.Cmd) error { return c.net.start(p.i, cmd) }, args, env)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = n.Cmd.Process.Kill() }) // The process may have ended.
	defer stop()
	p.mu.Lock()
	p.lives = append(p.lives, n)
	p.mu.Unlock()
	<-n.Ended()
	p.mu.Lock()
	p.ended++
	p.mu.Unlock()
	return nil
}

// now returns the process that runs, if it serves.
func (p *post) now() (*node, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.fault != nil:
		return nil, p.fault
	case len(p.lives) == p.ended:
		return nil, fmt.Errorf("%s does not run", p.town.net.address(p.i))
	}
	n := p.lives[len(p.lives)-1]
	if !n.Greeted() {
		return nil, fmt.Errorf("%s does not serve", n.address)
	}
	return n, nil
}

// past returns the processes that have ended.
func (p *post) past() []*node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lives[:p.ended])
}

// all returns every process that ever ran.
func (c *town) all() []*node {
	var all []*node
	for _, p := range c.posts {
		p.mu.Lock()
		all = append(all, p.lives...)
		p.mu.Unlock()
	}
	return all
}

// nodes returns the processes that run now. It is an error if one does not serve.
func (c *town) nodes() ([]*node, error) {
	nodes := make([]*node, len(c.posts))
	for i, p := range c.posts {
		n, err := p.now()
		if err != nil {
			return nil, err
		}
		nodes[i] = n
	}
	return nodes, nil
}

// one waits until all nodes are up in one cluster, and returns their processes.
func (c *town) one() (nodes []*node, err error) {
	err = c.poll(func(ctx context.Context) error {
		if nodes, err = c.nodes(); err != nil {
			return err
		}
		for _, n := range nodes {
			if err := n.sees(ctx, nodes); err != nil {
				return err
			}
		}
		return nil
	})
	return nodes, err
}

// openDesks starts clerks that ask one node after the other, also those that are cut off.
func (c *town) openDesks(ids []string) *clerks {
	const desks = 12 // Some clerks wait for long, for accounts that no node serves.
	return c.openDesksOver(desks, ids, func(ctx context.Context, n, attempt int, t bank.Transfer) (bank.Receipt, error) {
		over, err := c.posts[(n+attempt)%len(c.posts)].now()
		if err != nil {
			return bank.Receipt{}, err
		}
		var r bank.Receipt
		err = over.do(ctx, http.MethodPost, "/transfers?within=2s", t, &r)
		return r, err
	})
}

// awaitMore waits until the clerks have a hundred more receipts.
func (k *clerks) awaitMore() {
	k.city.t.Helper()
	count := func() int {
		k.mu.Lock()
		defer k.mu.Unlock()
		return len(k.kept)
	}
	want := count() + 100
	k.city.await(func(context.Context) error {
		if got := count(); got < want {
			return fmt.Errorf("%d of %d transfers are acknowledged", got, want)
		}
		return nil
	})
}

// restarts returns how often a node has ended, after which its supervisor starts it again,
// and checks that it ended with the status each time.
func (p *post) restarts(status int) int {
	p.town.t.Helper()
	past := p.past()
	for _, n := range past {
		require.Equal(p.town.t, status, n.Cmd.ProcessState.ExitCode(), "%s", n.log)
	}
	return len(past)
}

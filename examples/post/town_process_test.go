// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/examples/attached"
	"github.com/quorate/quorate/examples/attached/attachedtest"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
)

// A town: five processes with the post office, and people who put letters into boxes all the time, and have boxes
// reminded. They note what they were promised.

const (
	nodes = 5
	boxes = 60
	// lookInterval is how often conditions are looked at.
	lookInterval = 100 * time.Millisecond
	// letterInterval and reminderInterval are how often somebody comes.
	letterInterval   = 10 * time.Millisecond
	reminderInterval = 150 * time.Millisecond
)

// town is a cluster with all around it.
type town struct {
	t     *testing.T
	seed  uint64
	rnd   *rand.Rand // Of the test alone.
	dir   string
	ports []int

	sockets string // Directory of the sockets for operators, whose paths must be short.

	mu    sync.Mutex
	nodes [nodes]*attachedtest.Node // Nil: the node does not run, or people were told not to go there.

	promised promises
}

// promises are what people were told.
type promises struct {
	mu        sync.Mutex
	letters   map[string]string // The box of each letter that was taken.
	doubtful  map[string]string // Of each letter to which nobody has said anything, or that it failed.
	reminders map[string]string // The box of each reminder that was set.
	failed    map[string]int    // How often people were refused, by what they were told.
}

// newTown builds the program and starts all nodes, with settings besides those that they need.
func newTown(t *testing.T, seed uint64, settings string) *town {
	t.Helper()
	w := &town{
		t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 7)), dir: t.TempDir(), ports: attachedtest.Ports(t, nodes),
		promised: promises{letters: map[string]string{}, doubtful: map[string]string{}, reminders: map[string]string{}, failed: map[string]int{}},
	}
	var err error
	w.sockets, err = os.MkdirTemp("", "post") //nolint:usetesting // The path of a socket has room for some hundred bytes, which that of the test may take.
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(w.sockets)) })
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", w.path("post"), ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	file := fmt.Sprintf("cluster: {name: post}\nmembership: {seed-nodes: [%q, %q, %q]}\nstates: {store: journal}\n", w.address(0), w.address(1), w.address(2)) + settings
	require.NoError(t, os.WriteFile(w.path("cluster.yaml"), []byte(file), 0o600))
	w.startAll()
	return w
}

func (w *town) path(name string) string       { return filepath.Join(w.dir, name) }
func (w *town) own(i int) string              { return w.path(fmt.Sprintf("own-%d", i)) }
func (w *town) socket(i int) string           { return filepath.Join(w.sockets, strconv.Itoa(i)) }
func (w *town) address(i int) string          { return fmt.Sprintf("127.0.0.1:%d", w.ports[i]) }
func (w *town) node(i int) *attachedtest.Node { w.mu.Lock(); defer w.mu.Unlock(); return w.nodes[i] }

// start starts a node where it was before.
func (w *town) start(i int) {
	w.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), w.path("post"), "-attached", "-config", w.path("cluster.yaml"), "-journal", w.path("journal"), "-own", w.own(i))
	cmd.Env = append(os.Environ(), "QUORATE_NODE__ADDRESS="+w.address(i), "QUORATE_NODE__DATA_DIR="+w.own(i)+"/data", "QUORATE_MANAGEMENT__OPERATORS__SOCKET="+w.socket(i))
	n := attachedtest.Start(w.t, w.address(i), cmd)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[i] = n
}

// startAll starts all nodes at one moment.
func (w *town) startAll() {
	w.t.Helper()
	for i := range nodes {
		w.start(i)
	}
	w.settle()
}

// note says what is done, and when.
func (w *town) note(format string, args ...any) {
	w.t.Helper()
	w.t.Log(time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

// close has people not go to a node any more, and returns the node.
func (w *town) close(i int) *attachedtest.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.nodes[i]
	w.nodes[i] = nil
	return n
}

// kill ends a node without warning.
func (w *town) kill(i int) {
	w.note("node %d is killed", i)
	w.close(i).Kill()
}

// leave has a node leave in order.
func (w *town) leave(i int) {
	w.t.Helper()
	w.note("node %d leaves", i)
	n := w.close(i)
	require.NoError(w.t, n.Cmd.Process.Signal(syscall.SIGTERM))
	w.ended(n, cluster.ExitStatus(nil))
}

// ended waits until a node has ended with a status.
func (w *town) ended(n *attachedtest.Node, status int) {
	w.t.Helper()
	select {
	case <-n.Ended():
	case <-patience.Ended(w.t):
		require.FailNow(w.t, "a node does not end", "%s", n.Log)
	}
	require.Equal(w.t, status, n.Cmd.ProcessState.ExitCode(), "%s", n.Log)
}

// operate asks a node as an operator.
func (w *town) operate(i int, path, operation string, into any) error {
	return attached.Operate(w.t.Context(), w.socket(i), path, operation, into)
}

// eventually waits until a condition holds, which says what is missing.
func (w *town) eventually(what string, missing func() string) {
	w.t.Helper()
	looks := time.NewTicker(lookInterval)
	defer looks.Stop()
	for ended := patience.Ended(w.t); ; {
		last := missing()
		if last == "" {
			return
		}
		select {
		case <-looks.C:
		case <-ended:
			require.FailNow(w.t, what+" did not come about", "%s", last)
		}
	}
}

// settle waits until all nodes run, are members, and know of each other's boxes.
func (w *town) settle() {
	w.t.Helper()
	w.eventually("a whole cluster", func() string {
		for i := range nodes {
			var got management.ClusterMembers
			if err := w.operate(i, "/v1/members", "", &got); err != nil {
				return err.Error()
			}
			up := 0
			for _, m := range got.Members {
				if m.Status == "up" {
					up++
				}
			}
			if up != nodes || len(got.Members) != nodes {
				return fmt.Sprintf("node %d sees %d of %d members up", i, up, len(got.Members))
			}
		}
		return ""
	})
}

// gone waits until no other node has a node among its members.
func (w *town) gone(i int) {
	w.t.Helper()
	w.eventually("the end of a member", func() string {
		for k := range nodes {
			var got management.ClusterMembers
			if k == i {
				continue
			}
			if err := w.operate(k, "/v1/members", "", &got); err != nil {
				return err.Error()
			}
			for _, m := range got.Members {
				if strings.HasPrefix(m.Node, w.address(i)+"#") {
					return fmt.Sprintf("node %d has it among its members", k)
				}
			}
		}
		return ""
	})
}

// people come until ctx ends.
func (w *town) people(ctx context.Context) {
	var on sync.WaitGroup
	defer on.Wait()
	rnd := rand.New(rand.NewPCG(w.seed, 8))
	letters, reminders := time.NewTicker(letterInterval), time.NewTicker(reminderInterval)
	defer letters.Stop()
	defer reminders.Stop()
	for n := 0; ; n++ {
		box, at := fmt.Sprintf("box-%d", rnd.IntN(boxes)), rnd.IntN(nodes)
		select {
		case <-ctx.Done():
			return
		case <-letters.C:
			on.Go(func() { w.comes(at, box, "letters", fmt.Sprintf("letter-%06d", n)) })
		case <-reminders.C:
			on.Go(func() { w.comes(at, box, "reminders", fmt.Sprintf("reminder-%06d", n)) })
		}
	}
}

// comes has somebody come with a letter or a reminder, and notes what was said.
func (w *town) comes(at int, box, what, name string) {
	n := w.node(at)
	if n == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*requestTimeout) //quorate:realtime So long people wait.
	defer cancel()
	status, said := post(ctx, n.HTTP, "/boxes/"+box+"/"+what+"/"+name)
	w.promised.mu.Lock()
	defer w.promised.mu.Unlock()
	switch {
	case status != http.StatusOK:
		w.promised.failed[strings.TrimSpace(said[strings.LastIndex(said, ": ")+1:])]++
		if what == "letters" {
			w.promised.doubtful[name] = box
		}
	case what == "letters":
		w.promised.letters[name] = box
	default:
		w.promised.reminders[name] = box
	}
}

// post sends a request, and returns the status, 0 if nobody answers, and what was said.
func post(ctx context.Context, host, path string) (status int, said string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+host+path, http.NoBody)
	if err != nil {
		return 0, err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "no answer"
	}
	defer func() { _ = response.Body.Close() }() // It was read.
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "no whole answer"
	}
	return response.StatusCode, string(text)
}

// boxOf asks a box by any node.
func (w *town) boxOf(i int, id string) (b box, err error) {
	response, err := w.node(i).Request(w.t.Context(), "/boxes/"+id)
	if err != nil {
		return b, err
	}
	defer func() { _ = response.Body.Close() }() // It was read.
	if response.StatusCode != http.StatusOK {
		text, err := io.ReadAll(response.Body)
		return b, fmt.Errorf("%s: %s: %w", response.Status, text, err)
	}
	return b, json.NewDecoder(response.Body).Decode(&b)
}

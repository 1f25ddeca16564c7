// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	"github.com/quorate/quorate/internal/patience/logtest"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/singleton"
)

// Three processes of this test program run a singleton that does nothing but look at its context. The one that has it
// is stopped until another one has begun, and goes on: by then none of its looks may find the context open. What the
// runs have to say they append to one file: when they began, and what those of a run have seen that has ended.

// lookFile names the file to the processes, which are nodes if it is set; lookConfig the file of the cluster.
const lookFile, lookConfig = "QUORATE_LOOK_FILE", "QUORATE_LOOK_CONFIG"

// lookers is the number of goroutines that look, in the hope that one of them has its turn first.
const lookers = 4

// sight is a line of the file.
type sight struct {
	Node  string
	Ended bool
	At    time.Time // Of the beginning, or of the last look that found the context open: before that look.
}

// TestLookingNode is a node.
func TestLookingNode(t *testing.T) {
	if os.Getenv(lookFile) == "" {
		return
	}
	attached.EndWithParent()
	node, err := cluster.Start(t.Context(), cluster.WithFile(os.Getenv(lookConfig)))
	require.NoError(t, err)
	require.NoError(t, singleton.Start(node, singleton.Config{Name: "look", Run: func(ctx context.Context, _ sharding.Epoch) error {
		note(sight{Node: node.Self().String(), At: time.Now()})
		var mu sync.Mutex
		var all sync.WaitGroup
		last := sight{Node: node.Self().String(), Ended: true}
		for range lookers {
			all.Go(func() { // Waited for below; ends with the context.
				for before := time.Now(); ctx.Err() == nil; before = time.Now() {
					mu.Lock()
					if before.After(last.At) {
						last.At = before
					}
					mu.Unlock()
					<-time.After(100 * time.Microsecond) //quorate:realtime How often it looks.
				}
			})
		}
		all.Wait()
		note(last)
		return nil
	}}))
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"node": node.Self().String()}); err != nil {
		return // The parent has ended.
	}
	<-node.Done()
}

// note appends a line. An error leaves the line out, which the test notices.
func note(s sight) {
	line, _ := json.Marshal(s)
	f, err := os.OpenFile(os.Getenv(lookFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = f.Write(append(line, '\n'))
		_ = f.Close()
	}
}

// A run that was stopped finds its context ended at the first look, however late whoever ends contexts has its turn.
// covers I14.
func TestARunThatWasStoppedSeesItsEndAtTheFirstLook(t *testing.T) {
	t.Parallel() // Tests of clusters mostly wait.
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			lookOnce(t)
		})
	}
}

func lookOnce(t *testing.T) {
	dir, ports := t.TempDir(), attachedtest.Ports(t, 3)
	sights, file := filepath.Join(dir, "sights"), filepath.Join(dir, "cluster.yaml")
	address := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	text := fmt.Sprintf("cluster: {name: look}\nmembership: {seed-nodes: [%q, %q, %q]}\n", address(0), address(1), address(2))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	nodes := map[string]*attachedtest.Node{}
	var started []*attached.Process
	for i := range ports {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run=^TestLookingNode$")
		cmd.Env = append(os.Environ(), lookFile+"="+sights, lookConfig+"="+file, "QUORATE_NODE__ADDRESS="+address(i))
		n := &attachedtest.Node{Log: new(logtest.Buffer)}
		cmd.Stderr = n.Log
		var err error
		n.Process, err = attached.Start(cmd, (*exec.Cmd).Start)
		require.NoError(t, err)
		n.EndWith(t, address(i))
		nodes[address(i)], started = n, append(started, n.Process)
	}
	for _, p := range started {
		require.NoError(t, patience.Receive(t, p.Hello(), "the first line of a node"))
	}
	first := awaitSight(t, sights, func(sight) bool { return true })
	holder := nodes[strings.Split(first.Node, "#")[0]]
	require.NotNil(t, holder, "%+v", first)
	require.NoError(t, holder.Cmd.Process.Signal(syscall.SIGSTOP))
	second := awaitSight(t, sights, func(s sight) bool { return s.Node != first.Node })
	//quorate:realtime The other is at work meanwhile.
	<-time.After(time.Second)
	require.NoError(t, holder.Cmd.Process.Signal(syscall.SIGCONT))
	last := awaitSight(t, sights, func(s sight) bool { return s.Ended && s.Node == first.Node })
	require.True(t, last.At.Before(second.At), "open at %v, another began at %v, %v before", last.At, second.At, last.At.Sub(second.At))
}

// awaitSight waits for a line.
func awaitSight(t *testing.T, path string, is func(sight) bool) (found sight) {
	t.Helper()
	patience.Eventually(t, func() bool {
		text, _ := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			var s sight
			if json.Unmarshal([]byte(line), &s) == nil && is(s) {
				found = s
				return true
			}
		}
		return false
	}, "the line of a run")
	return found
}

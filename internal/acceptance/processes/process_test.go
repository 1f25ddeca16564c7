// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && unix

package processes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/attached"
	"github.com/quorate/quorate/examples/attached/attachedtest"
	"github.com/quorate/quorate/examples/bank"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/internal/patience/logtest"
)

// What all tests with processes share: building the node program, a cluster of such
// processes (city), one process (node) from its start to its end, requests to its HTTP
// interface, and waiting for members, balances and owners.

// program is the path of the node program, built once for all tests.
var program string

func TestMain(m *testing.M) { os.Exit(withProgram(m)) }

// withProgram builds the node program and runs the tests.
func withProgram(m *testing.M) int {
	dir, err := os.MkdirTemp("", "quorate-process-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "bank")
	build := exec.Command("go", "build", "-o", program, "./bank/cmd/bank")
	build.Dir = filepath.Join("..", "..", "..", "examples")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// city is a cluster of processes with one configuration file.
type city struct {
	t       *testing.T
	dir     string
	ports   []int
	journal string
	client  *http.Client
	started int
}

// newCity writes the file of a cluster; extra lines are added to it.
func newCity(t *testing.T, extra ...string) *city {
	t.Helper()
	c := &city{t: t, dir: t.TempDir(), ports: attachedtest.Ports(t, 8), client: &http.Client{Timeout: patience.Limit}}
	c.journal = filepath.Join(c.dir, "journal")
	c.configure("cluster.yaml", extra...)
	return c
}

// configure writes the file of a cluster, with extra lines.
func (c *city) configure(name string, extra ...string) {
	c.t.Helper()
	c.write(name, append([]string{
		"cluster: {name: bank}",
		"node: {address: " + c.address(0) + "}",
		"membership:",
		"  seed-nodes: [" + c.address(0) + ", " + c.address(1) + "]",
	}, extra...)...)
}

// write writes a file of the city. A node that watches the file sees its former text or the
// whole new one.
func (c *city) write(name string, lines ...string) {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	require.NoError(c.t, os.WriteFile(path+".new", []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	require.NoError(c.t, os.Rename(path+".new", path))
}

// address returns the address of the i-th node.
func (c *city) address(i int) string { return fmt.Sprintf("127.0.0.1:%d", c.ports[i]) }

// node is one process.
type node struct {
	*attached.Process

	city    *city
	address string // Its address in the cluster.
	log     *logtest.Buffer
}

// launch starts a process at the next address. It waits for nothing. The
// process is killed when the test ends.
func (c *city) launch(env ...string) *node {
	c.t.Helper()
	return c.launchWith(nil, env...)
}

// launchWith is launch with more arguments on the command line.
func (c *city) launchWith(args []string, env ...string) *node {
	c.t.Helper()
	n, err := c.spawn(c.address(c.started), (*exec.Cmd).Start, args, env)
	require.NoError(c.t, err)
	c.started++
	c.t.Cleanup(func() {
		_ = n.Cmd.Process.Kill() // The process may have ended.
		<-n.Ended()
		if c.t.Failed() {
			c.t.Logf("log of %s:\n%s", n.address, n.log)
		}
	})
	return n
}

// spawn starts a process with an address, by the function start. The caller ends the
// process.
func (c *city) spawn(address string, start func(*exec.Cmd) error, args, env []string) (*node, error) {
	n := &node{city: c, address: address, log: new(logtest.Buffer)}
	cmd := exec.Command(program, append([]string{"-config", filepath.Join(c.dir, "cluster.yaml"), "-journal", c.journal, "-attached"}, args...)...)
	cmd.Env = append(os.Environ(), append([]string{"QUORATE_NODE__ADDRESS=" + address}, env...)...)
	cmd.Stderr = n.log
	var err error
	n.Process, err = attached.Start(cmd, start)
	return n, err
}

// start starts a process and waits until it serves.
func (c *city) start(env ...string) *node {
	c.t.Helper()
	n := c.launch(env...)
	c.awaitHello(n)
	return n
}

// awaitHello waits until a process serves.
func (c *city) awaitHello(n *node) {
	c.t.Helper()
	select {
	case err := <-n.Hello():
		require.NoError(c.t, err, "%s did not start:\n%s", n.address, n.log)
	case <-patience.Ended(c.t):
		require.Fail(c.t, "no greeting", "%s:\n%s", n.address, n.log)
	}
}

// settle starts n nodes and waits until all see each other up.
func (c *city) settle(n int) []*node {
	c.t.Helper()
	nodes := make([]*node, n)
	for i := range nodes {
		nodes[i] = c.start()
	}
	c.awaitMembers(nodes...)
	return nodes
}

// settleAlone starts a node that is the only one of its list of seed nodes, and so
// founds a cluster without others.
func (c *city) settleAlone() *node {
	c.t.Helper()
	n := c.start("QUORATE_MEMBERSHIP__SEED_NODES=" + c.address(c.started))
	c.awaitMembers(n)
	return n
}

// status waits for the end of a process and returns its exit status.
func (n *node) status() int {
	n.city.t.Helper()
	select {
	case <-n.Ended():
	case <-patience.Ended(n.city.t):
		require.FailNow(n.city.t, "the process does not end", "%s:\n%s", n.address, n.log)
	}
	return n.Cmd.ProcessState.ExitCode()
}

// signal sends a signal to the process.
func (n *node) signal(s os.Signal) {
	n.city.t.Helper()
	require.NoError(n.city.t, n.Cmd.Process.Signal(s))
}

// freeze stops a process and waits until all of it stands still: until then it may still
// answer what was sent to it.
func (n *node) freeze() {
	n.city.t.Helper()
	n.signal(syscall.SIGSTOP)
	n.city.t.Cleanup(func() { _ = n.Cmd.Process.Signal(syscall.SIGCONT) }) // The process may have ended.
	n.city.await(func(context.Context) error {
		var status syscall.WaitStatus
		changed, err := syscall.Wait4(n.Cmd.Process.Pid, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		if err == nil && (changed == 0 || !status.Stopped()) {
			err = fmt.Errorf("%s has not stopped", n.address)
		}
		return err
	})
}

// get asks a node and decodes its answer.
func (n *node) get(ctx context.Context, path string, into any) error {
	return n.do(ctx, http.MethodGet, path, nil, into)
}

// do sends a request. An answer other than 200 is an error.
func (n *node) do(ctx context.Context, method, path string, body, into any) error {
	return n.doBy(ctx, n.city.client, method, path, body, into)
}

// doBy is do with another client than that of the city.
func (n *node) doBy(ctx context.Context, client *http.Client, method, path string, body, into any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+n.HTTP+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(text))
	}
	return json.Unmarshal(text, into)
}

// transfer asks a node for a transfer once; nil means that it is acknowledged.
func (n *node) transfer(ctx context.Context, t bank.Transfer) error {
	return n.do(ctx, http.MethodPost, "/transfers", t, new(bank.Receipt))
}

// transferBy is transfer with another client than that of the city.
func (n *node) transferBy(ctx context.Context, client *http.Client, t bank.Transfer) error {
	return n.doBy(ctx, client, http.MethodPost, "/transfers", t, new(bank.Receipt))
}

// balance is what GET /accounts/{id} answers.
type balance struct {
	Cents int64  `json:"cents"`
	Epoch string `json:"epoch"`
}

// view is what GET /members answers.
type view struct {
	Members []struct {
		Node        string `json:"node"`
		Status      string `json:"status"`
		Unreachable bool   `json:"unreachable"`
	} `json:"members"`
}

// awaitMembers waits until each of the nodes sees exactly these nodes, all of
// them up and reachable.
func (c *city) awaitMembers(nodes ...*node) {
	c.t.Helper()
	c.await(func(ctx context.Context) error {
		for _, n := range nodes {
			if err := n.sees(ctx, nodes); err != nil {
				return err
			}
		}
		return nil
	})
}

// sees returns an error unless n sees exactly the nodes, up and reachable.
func (n *node) sees(ctx context.Context, nodes []*node) error {
	var v view
	if err := n.get(ctx, "/members", &v); err != nil {
		return err
	}
	up := map[string]bool{}
	for _, m := range v.Members {
		up[m.Node] = m.Status == "up" && !m.Unreachable
	}
	for _, other := range nodes {
		if !up[other.Node] {
			return fmt.Errorf("%s does not see %s up: %+v", n.address, other.address, v)
		}
	}
	if len(v.Members) != len(nodes) {
		return fmt.Errorf("%s sees others as well: %+v", n.address, v)
	}
	return nil
}

// await asks ok again and again until it returns nil.
func (c *city) await(ok func(context.Context) error) {
	c.t.Helper()
	require.NoError(c.t, c.poll(ok))
}

// poll is await for goroutines other than the test's own.
func (c *city) poll(ok func(context.Context) error) error {
	ctx := patience.Context(c.t)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ok(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-tick.C:
		}
	}
}

// accounts returns the names of n accounts.
func accounts(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("acct-%03d", i)
	}
	return ids
}

// readAll asks for the balance of each account, at one node after the other until one
// answers, and returns the balances.
func (c *city) readAll(ids []string, nodes ...*node) map[string]balance {
	c.t.Helper()
	answers, faults := make([]balance, len(ids)), make([]error, len(ids))
	var asking sync.WaitGroup
	for i, id := range ids {
		attempt := i
		asking.Go(func() {
			faults[i] = c.poll(func(ctx context.Context) error {
				attempt++
				return nodes[attempt%len(nodes)].get(ctx, "/accounts/"+id, &answers[i])
			})
		})
	}
	asking.Wait()
	require.NoError(c.t, errors.Join(faults...))
	all := map[string]balance{}
	for i, id := range ids {
		all[id] = answers[i]
	}
	return all
}

// move makes a transfer, repeated until it is answered.
func (c *city) move(over *node, t bank.Transfer) {
	c.t.Helper()
	c.await(func(ctx context.Context) error { return over.transfer(ctx, t) })
}

// owner returns the node that owns an account, as the journal of the account says.
func (c *city) owner(id string) string {
	c.t.Helper()
	owners := c.owners(id)
	return owners[len(owners)-1].Node
}

// ownedBy returns the accounts of a list that a node owns.
func (c *city) ownedBy(n *node, ids []string) []string {
	c.t.Helper()
	var own []string
	for _, id := range ids {
		if c.owner(id) == n.Node {
			own = append(own, id)
		}
	}
	return own
}

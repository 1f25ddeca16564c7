// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build postgres && unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// A server of PostgreSQL for one test, as the distribution packages it: with data in a directory of its
// own, reached by a socket there and by nothing else.

// server is a server that was started.
type server struct {
	testing.TB

	dir     string
	as      *syscall.SysProcAttr
	process *exec.Cmd
	output  strings.Builder
	ended   chan struct{} // Closed when the process has ended.
}

// limit bounds the wait for a server.
const limit = 30 * time.Second

// program finds a program of PostgreSQL: Debian has most of them in a directory of the version.
func program(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	require.NoError(t, err)
	require.NotEmpty(t, found, "%s is not installed", name)
	return found[len(found)-1]
}

// other returns how a process is run as somebody else, where the tests run as root: PostgreSQL refuses
// to.
func other(t testing.TB, dir string) *syscall.SysProcAttr {
	t.Helper()
	attr := &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() != 0 {
		return attr
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	require.NoError(t, err)
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	require.NoError(t, err)
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	require.NoError(t, err)
	require.NoError(t, os.Chown(dir, int(uid), int(gid)))
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr
}

// start starts a server that ends with the test.
func start(t testing.TB) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "pg") //nolint:usetesting // That of the test is not open to another user.
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &server{TB: t, dir: dir, as: other(t, dir)}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	initialise := exec.CommandContext(ctx, program(t, "initdb"), "-D", s.data(), "-A", "trust", "-U", "bank", "-E", "UTF8", "--no-locale", "-N")
	initialise.SysProcAttr, initialise.Dir = s.as, dir
	out, err := initialise.CombinedOutput()
	require.NoError(t, err, "%s", out)
	s.run()
	t.Cleanup(func() { s.stop(syscall.SIGQUIT) })
	return s
}

func (s *server) data() string { return filepath.Join(s.dir, "data") }

// run starts the process, and waits until it takes connections.
func (s *server) run() {
	s.Helper()
	s.process = exec.Command(program(s, "postgres"), "-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "max_connections=40", "-c", "shared_buffers=16MB")
	s.process.SysProcAttr, s.process.Dir = s.as, s.dir
	s.process.Stdout, s.process.Stderr = &s.output, &s.output
	require.NoError(s, s.process.Start())
	s.ended = make(chan struct{})
	go func(p *exec.Cmd, ended chan<- struct{}) { // Stop waits for it.
		_ = p.Wait()
		close(ended)
	}(s.process, s.ended)
	ctx, cancel := context.WithTimeout(s.Context(), limit)
	defer cancel()
	pool := s.pool(s)
	defer pool.Close()
	for pool.Ping(ctx) != nil {
		select {
		case <-s.ended:
			require.Fail(s, "the server has ended", "%s", &s.output)
		case <-ctx.Done():
			require.Fail(s, "the server takes no connections", "%s", &s.output)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop ends the process. By SIGQUIT it ends as in a crash: the next one recovers from the log.
func (s *server) stop(signal syscall.Signal) {
	err := s.process.Process.Signal(signal)
	if !errors.Is(err, os.ErrProcessDone) {
		require.NoError(s, err)
	}
	<-s.ended
}

// pool returns connections to the server, which end with a test.
func (s *server) pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), fmt.Sprintf("host=%s user=bank dbname=postgres pool_max_conns=16", s.dir))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

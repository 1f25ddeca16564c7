// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && postgres && unix

package main

import (
	"context"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/attached"
)

// A server of PostgreSQL for the test, as the distribution packages it: with data in a directory of its
// own, reached by a socket there and by nothing else.

// postgresProgram finds a program of PostgreSQL: Debian has most of them in a directory of the version.
func postgresProgram(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	require.NoError(t, err)
	require.NotEmpty(t, found, "%s is not installed", name)
	return found[len(found)-1]
}

// asSomebody returns how a process is run as somebody else where the tests run as root, for whom
// PostgreSQL does not run, and gives them a directory.
func asSomebody(t *testing.T, dir string) *syscall.SysProcAttr {
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

// startPostgres starts a server that ends with the test. It returns how nodes connect to it, and
// connections of the test.
func startPostgres(t *testing.T) (database string, pool *pgxpool.Pool) {
	t.Helper()
	dir, err := os.MkdirTemp("", "pg") //nolint:usetesting // That of the test is not open to another user.
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	as, data := asSomebody(t, dir), filepath.Join(dir, "data")
	initialise := exec.CommandContext(t.Context(), postgresProgram(t, "initdb"), "-D", data, "-A", "trust", "-U", "devices", "-E", "UTF8", "--no-locale", "-N")
	initialise.SysProcAttr, initialise.Dir = as, dir
	out, err := initialise.CombinedOutput()
	require.NoError(t, err, "%s", out)

	// The server is never killed, and so need not wait for its disk: that leaves the time to the cluster.
	log := new(attached.Log)
	server := exec.Command(postgresProgram(t, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
	server.SysProcAttr, server.Dir, server.Stdout, server.Stderr = as, dir, log, log
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT) // It has ended otherwise.
		_ = server.Wait()                          // Its data are thrown away.
	})
	database = "host=" + dir + " user=devices dbname=postgres pool_max_conns=10"
	pool, err = pgxpool.New(context.WithoutCancel(t.Context()), database)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	require.Eventually(t, func() bool { return pool.Ping(t.Context()) == nil }, patience, 20*time.Millisecond, "the server takes no connections: %s", log)
	return database, pool
}

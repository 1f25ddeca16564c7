// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package states

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quorate/quorate/bench/internal/measure"
)

// server is a server of PostgreSQL, reached by a socket in its directory and by nothing else.
type server struct {
	dir     string
	process *exec.Cmd
	pool    *pgxpool.Pool
}

const (
	startLimit  = time.Minute // For a server to take connections.
	connections = 8
)

// program finds a program of PostgreSQL: Debian has most of them in a directory of the version.
func program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(found) > 0 { // The pattern is valid.
		return found[len(found)-1], nil
	}
	return "", err
}

// missing says why there is no server; empty if there is one.
func missing() string {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := program(name); err != nil {
			return "PostgreSQL is not installed: " + err.Error()
		}
	}
	return ""
}

// startServer starts a server with the table of the floor.
func startServer(ctx context.Context) (s *server, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	dir, err := os.MkdirTemp("", "bench-pg")
	if err != nil {
		return nil, err
	}
	s = &server{dir: dir}
	defer func() {
		if err != nil {
			s.end()
		}
	}()
	as, err := somebody(dir)
	if err != nil {
		return nil, err
	}
	command := func(name string, args ...string) (*exec.Cmd, error) {
		path, err := program(name)
		cmd := exec.Command(path, args...) //nolint:noctx // Servers are ended by end.
		cmd.Dir, cmd.SysProcAttr = dir, as
		return cmd, err
	}
	data := filepath.Join(dir, "data")
	initialise, err := command("initdb", "-D", data, "-A", "trust", "-U", "bench", "-E", "UTF8", "--no-locale", "-N")
	if err != nil {
		return nil, err
	}
	if out, err := initialise.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("bench: initdb: %w: %s", err, out)
	}
	run, err := command("postgres", "-D", data, "-k", dir, "-c", "listen_addresses=")
	if err != nil {
		return nil, err
	}
	if err := run.Start(); err != nil {
		return nil, err
	}
	s.process = run
	s.pool, err = pgxpool.New(ctx, fmt.Sprintf("host=%s user=bench dbname=postgres pool_max_conns=%d", dir, connections))
	if err != nil {
		return nil, err
	}
	for s.pool.Ping(ctx) != nil {
		if err := measure.Pause(ctx, 20*time.Millisecond); err != nil {
			return nil, errors.Join(errors.New("bench: PostgreSQL takes no connections"), err)
		}
	}
	return s, nil
}

// end ends the server, and takes its directory away.
func (s *server) end() {
	if s.pool != nil {
		s.pool.Close()
	}
	if s.process != nil {
		_ = s.process.Process.Signal(os.Interrupt) // It has ended otherwise.
		_ = s.process.Wait()                       // Its data are thrown away.
	}
	_ = os.RemoveAll(s.dir) // In the directory for temporary files.
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// A server is made by Start, of which begin makes the data; a process of it starts with Run and ends with Crash.
// Programs of PostgreSQL are found by program; what they say goes to a tail.

const (
	// pollInterval is how often a server that starts is asked whether it takes connections.
	pollInterval = 20 * time.Millisecond
	// logBytes is how much of what a server says is kept: the end.
	logBytes = 64 << 10
)

// ErrMissing says that PostgreSQL is not installed.
var ErrMissing = errors.New("postgrestest: PostgreSQL is not installed")

// Server is a server of PostgreSQL.
type Server struct {
	dir      string
	as       *syscall.SysProcAttr
	settings []string
	said     *tail
	process  *exec.Cmd
	ended    chan struct{} // Closed when the process has ended; nil before the first.
}

// Missing says which program of PostgreSQL is not installed, as an error that wraps [ErrMissing]; nil if a server
// can be started.
func Missing() error {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := program(name); err != nil {
			return err
		}
	}
	return nil
}

// program finds a program of PostgreSQL: Debian has most of them in a directory of the version.
func program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(found) > 0 { // The pattern is valid.
		return found[len(found)-1], nil
	}
	return "", fmt.Errorf("%w: %w", ErrMissing, err)
}

// Start starts a server, and waits until it takes connections or ctx ends. Each setting is one of postgresql.conf, such
// as "max_connections=40". The errors: [ErrMissing], that of ctx, or what the server says.
func Start(ctx context.Context, settings ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "pg") // A short name: that of a socket has 107 bytes at most.
	if err != nil {
		return nil, fmt.Errorf("postgrestest: %w", err)
	}
	s := &Server{dir: dir, settings: settings, said: new(tail)}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// begin makes the data, and starts the process.
func (s *Server) begin(ctx context.Context) (err error) {
	if s.as, err = somebody(s.dir); err != nil {
		return fmt.Errorf("postgrestest: %w", err)
	}
	path, err := program("initdb")
	if err != nil {
		return err
	}
	initialise := exec.CommandContext(ctx, path, "-D", s.data(), "-A", "trust", "-U", "tests", "-E", "UTF8", "--no-locale", "-N")
	initialise.SysProcAttr, initialise.Dir = s.as, s.dir
	if out, err := initialise.CombinedOutput(); err != nil {
		return fmt.Errorf("postgrestest: initdb: %w: %s", err, out)
	}
	return s.Run(ctx)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Connection says how to connect to the server, in keywords and values.
func (s *Server) Connection() string { return "host=" + s.dir + " user=tests dbname=postgres" }

// Log returns the end of what the server has said.
func (s *Server) Log() string { return s.said.String() }

// Run starts the process, again after [Server.Crash], and waits until it takes connections or ctx ends.
func (s *Server) Run(ctx context.Context) error {
	path, err := program("postgres")
	if err != nil {
		return err
	}
	args := []string{"-D", s.data(), "-k", s.dir, "-c", "listen_addresses="}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	process := exec.Command(path, args...) //nolint:noctx // It ends with Crash or Close, not with the start.
	process.SysProcAttr, process.Dir, process.Stdout, process.Stderr = s.as, s.dir, s.said, s.said
	if err := process.Start(); err != nil {
		return fmt.Errorf("postgrestest: %w", err)
	}
	ended := make(chan struct{})
	s.process, s.ended = process, ended
	// Owned by the server: ends with the process, for which Crash and Close wait.
	go func() {
		_ = process.Wait() // How it has ended is in its log.
		close(ended)
	}()
	return s.await(ctx)
}

// await waits until the server takes connections.
func (s *Server) await(ctx context.Context) error {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		if c, err := pgx.Connect(ctx, s.Connection()); err == nil {
			return c.Close(ctx)
		}
		select {
		case <-s.ended:
			return fmt.Errorf("postgrestest: the server has ended: %s", s.Log())
		case <-ctx.Done():
			return fmt.Errorf("postgrestest: the server takes no connections: %w: %s", context.Cause(ctx), s.Log())
		case <-poll.C:
		}
	}
}

// Crash ends the process as a crash does: the next one recovers from the log of the database.
func (s *Server) Crash() error {
	if s.ended == nil {
		return nil
	}
	if err := s.process.Process.Signal(crash); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("postgrestest: %w", err)
	}
	<-s.ended
	return nil
}

// Close ends the process, and takes the directory with the data away.
func (s *Server) Close() error { return errors.Join(s.Crash(), os.RemoveAll(s.dir)) }

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	end []byte // Guarded by mu.
}

// Write adds to the end.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, b...)
	t.end = t.end[max(0, len(t.end)-logBytes):]
	return len(b), nil
}

// String returns the end.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.end)
}

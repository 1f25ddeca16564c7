// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command_test

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/tools/internal/command"
)

// screen is a terminal: what is written to it is drawn, and what it shows can be read.
type screen struct {
	keyboard *os.File // What is written here is typed.
	tty      *os.File
	drawn    chan struct{} // Something was drawn; capacity one.
	reading  sync.WaitGroup

	mu       sync.Mutex // Guards emulator.
	emulator *vt.Emulator
}

func newScreen(t *testing.T, columns, rows int) *screen {
	t.Helper()
	master, tty, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(tty, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)}))
	s := &screen{keyboard: master, tty: tty, drawn: make(chan struct{}, 1), emulator: vt.NewEmulator(columns, rows)}
	s.reading.Go(s.read)                                        // Ends when the terminal is closed, which the test waits for.
	s.reading.Go(func() { _, _ = io.Copy(master, s.emulator) }) // What the terminal answers to questions, until its pipe is closed.
	t.Cleanup(func() {
		require.NoError(t, tty.Close())
		require.NoError(t, master.Close())
		require.NoError(t, s.emulator.InputPipe().(io.Closer).Close())
		s.reading.Wait()
	})
	return s
}

func (s *screen) read() {
	buffer := make([]byte, 1<<14)
	for {
		n, err := s.keyboard.Read(buffer)
		if err != nil {
			return
		}
		s.mu.Lock()
		_, _ = s.emulator.Write(buffer[:n]) // It takes everything.
		s.mu.Unlock()
		select {
		case s.drawn <- struct{}{}:
		default:
		}
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.emulator.String()
}

// shows waits until the screen shows all texts.
func (s *screen) shows(t *testing.T, texts ...string) {
	t.Helper()
	limit := patience.Ended(t)
	for {
		text, missing := s.text(), ""
		for _, want := range texts {
			if !strings.Contains(text, want) {
				missing = want
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-s.drawn:
		case <-limit:
			t.Fatalf("%q is not on the screen:\n%s", missing, text)
		}
	}
}

// run runs quorate top in the terminal, until it is ended by a key.
func (s *screen) run(args ...string) (ended chan int) {
	ended = make(chan int, 1)
	program := command.Program{Name: "quorate", Commands: []command.Command{
		{Name: "top", Help: "Top", Args: command.NewTop(s.tty)}, {Name: "version", Help: "Version", Args: &command.Version{}},
	}}
	go func() { ended <- program.Run(append([]string{"top"}, args...), s.tty, &bytes.Buffer{}) }() // The test waits for its status.
	return ended
}

// The node that is asked goes away and comes back at its address, while somebody looks.
func TestTopInATerminalLosesItsNodeAndFindsItAgain(t *testing.T) {
	serve := func(address string) *management.Server {
		cfg := management.Default()
		cfg.Address = address
		server, err := management.Serve(t.Context(), cfg, topRoutes(), management.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		return server
	}
	server := serve("127.0.0.1:0")
	address := server.Address()
	s := newScreen(t, 80, 24)
	ended := s.run("-node", address, "-every", "100ms", "-timeout", "2s")
	s.shows(t, "quorate top  10.0.0.1:7946", "standing not held", "AGE  STATUS       SHARDS  MEMBERS 2", "  1  up                1  10.0.0.1:7946  asked, leader", "account")
	require.NoError(t, server.Close())
	s.shows(t, "No answer since ", "10.0.0.1:7946  asked, leader", "asked again and again")
	server = serve(address)
	defer func() { require.NoError(t, server.Close()) }()
	s.shows(t, "standing not held")
	patience.Eventually(t, func() bool { return !strings.Contains(s.text(), "No answer") }, "an answer on the screen")
	_, err := s.keyboard.WriteString("?")
	require.NoError(t, err)
	s.shows(t, "members, kinds, rates, moves, decisions")
	_, err = s.keyboard.WriteString("?1")
	require.NoError(t, err)
	s.shows(t, "MEMBERS 2")
	_, err = s.keyboard.WriteString("q")
	require.NoError(t, err)
	require.Equal(t, command.StatusOK, <-ended)
}

func TestTopInATerminalOf20Columns(t *testing.T) {
	url := node(t, topRoutes()...)
	s := newScreen(t, 20, 12)
	ended := s.run("-node", url, "-every", "100ms")
	s.shows(t, "10.0.0.1:7946", "standing not held", "MEMBERS 2", "up", "q ends ? help")
	_, err := s.keyboard.WriteString("q")
	require.NoError(t, err)
	require.Equal(t, command.StatusOK, <-ended)
}

func TestTopInATerminalRefusesWhatNoNodeCouldBeAskedWith(t *testing.T) {
	s := newScreen(t, 80, 24)
	require.Equal(t, command.StatusUsage, <-s.run("-node", "ftp://x"))
	require.Equal(t, command.StatusUsage, <-s.run("-timeout", "0s"))
}

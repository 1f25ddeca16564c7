// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/quorate/quorate/tools/internal/top"
)

// Top is the command that shows a cluster in the terminal, live. Make one with [NewTop].
type Top struct {
	Every time.Duration `default:"2s" help:"The pause between two looks, 100ms to 1m (${default})."`

	RemoteFlags

	keyboard *os.File
}

// NewTop returns the command, with the file from which keys are read.
func NewTop(keyboard *os.File) *Top { return &Top{keyboard: keyboard} }

// Help is the text after the one-line help.
func (*Top) Help() string {
	return `Shows the cluster as one node sees it, and goes on: members with their states and
how many shards each hosts, the standing of the node, kinds, rates, shards that were
found at another home than before, and the last decisions of the node with their
reasons. Rates are shown if the node has telemetry.metrics: prometheus. A node that
does not answer any more is shown with what it said last, and asked again.

Where the output is no terminal, and with --json, one look is printed; the exit
status is 1 then if the node does not answer.

Keys: q ends, tab and 0 to 5 choose what is shown, arrows scroll, p pauses, + and -
change the pace, ? lists all.

Examples:
  quorate top
  quorate top -node http://10.0.0.7:8080 -every 500ms
  quorate top -node unix:///run/bank/operators
  quorate --json top | jq '.kinds[] | select(.homeless)'`
}

// Run shows the cluster.
func (c *Top) Run(s *Session) error {
	if c.Every < top.EveryLeast || c.Every > top.MaxEvery {
		return RejectedError{Text: fmt.Sprintf("-every %v: want %v to %v", c.Every, top.EveryLeast, top.MaxEvery)}
	}
	defer c.keep()() // One connection for all that is asked.
	out, ok := s.Stdout.(*os.File)
	if s.JSON || !ok || !Terminal(out) || c.keyboard == nil || !Terminal(c.keyboard) {
		return c.once(s)
	}
	if err := c.makesSense(); err != nil {
		return err
	}
	_, err := tea.NewProgram(top.New(source{&c.RemoteFlags}, c.Node, c.Every, time.Now), tea.WithInput(c.keyboard), tea.WithOutput(out)).Run()
	if errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

// makesSense reports flags that no node could be asked with.
func (c *Top) makesSense() error {
	if _, err := c.base(); err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	client.CloseIdleConnections()
	return nil
}

// once prints one look.
func (c *Top) once(s *Session) error {
	got, err := top.Gather(source{&c.RemoteFlags}, time.Now)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(got)
	}
	return top.Print(s.Stdout, got, columns)
}

// source asks a node for what is shown.
type source struct{ remote *RemoteFlags }

// Get asks for a path with an answer in JSON.
func (s source) Get(path string, query url.Values, into any) error {
	_, err := s.remote.get(path, query, into)
	return err
}

// Text asks for a path with an answer in text.
func (s source) Text(path string) (string, error) {
	status, text, err := s.remote.send(http.MethodGet, path, nil, http.NoBody)
	switch {
	case err != nil:
		return "", err
	case status == http.StatusNotFound:
		return "", errors.New("the node has no metrics: telemetry.metrics is not prometheus")
	case status != http.StatusOK:
		return "", fmt.Errorf("the node answers with status %d", status)
	case len(text) > maxAnswerBytes:
		return "", fmt.Errorf("the node answers with more than %d bytes", maxAnswerBytes)
	}
	return string(text), nil
}

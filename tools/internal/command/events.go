// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/management"
)

// The command events lists the last events of a node ([Events.Run]), and with -watch goes on with those that
// follow, over one connection after the other ([Events.follow], [Events.stream]).

// Events is the command that asks a node for what has happened.
type Events struct {
	Watch bool   `help:"Go on with what happens next, until it is interrupted."`
	Type  string `placeholder:"TYPES" help:"Only these types, separated by commas: member, removed, unreachable, reachable, leader, downing, fenced, decision."`
	Limit int    `default:"20" help:"The most events of the past to print, 1 to 2000 (${default})."`
	After string `placeholder:"ID" help:"Begin behind the event with this id, as --json prints it."`

	RemoteFlags
}

const (
	// maxSilence is how long nothing may come over a stream, in which a node says every ten seconds that it is there.
	maxSilence = 30 * time.Second
	// againAfter is how long a command waits before it connects again.
	againAfter = time.Second
	// maxEventBytes bounds one line of a stream.
	maxEventBytes = 1 << 20
)

// Help is the text after the one-line help.
func (*Events) Help() string {
	return `Prints what has happened to the cluster, as the node asked saw it, and which
decisions it took, a line each, the oldest first. The node keeps the last 2,000.
With -watch it goes on with what happens next, and if the connection is lost, from
where it was: a gap is said. With --json each event is a line of its own then.
The exit status is 1 when the node does not answer, with -watch for -timeout.

Examples:
  quorate events
  quorate events -watch -type member,removed,unreachable
  quorate events -type decision -limit 2000 -node http://10.0.0.7:8080
  quorate --json events -watch | jq -r 'select(.type == "gap").text'`
}

// Run asks the node for the last events, and goes on with those that follow.
func (c *Events) Run(s *Session) error {
	query := url.Values{"limit": {strconv.Itoa(c.Limit)}}
	for name, value := range map[string]string{"type": c.Type, "after": c.After} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var got management.EventList
	raw, err := c.get("/v1/events", query, &got)
	if err != nil {
		return err
	}
	if s.JSON && !c.Watch {
		return s.PrintJSON(raw)
	}
	if !s.JSON {
		field(s.Stdout, "asked", got.Self)
		fmt.Fprintln(s.Stdout)
	}
	for _, e := range got.Events {
		if err := printEvent(s, e); err != nil {
			return err
		}
	}
	if !c.Watch {
		return nil
	}
	return c.follow(s, got.Last)
}

// printEvent writes one event.
func printEvent(s *Session, e management.Event) error {
	if s.JSON {
		encoder := json.NewEncoder(s.Stdout)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(e)
	}
	lead := fmt.Sprintf("%-20s  %-11s  ", moment(e.At), printable(e.Type))
	colours := map[string]int{"unreachable": 31, "removed": 31, "gap": 31, "reachable": 32}
	colour := colours[e.Type]
	if colour == 0 {
		fmt.Fprint(s.Stdout, lead)
	} else {
		fmt.Fprint(s.Stdout, s.Paint(colour, lead))
	}
	paragraph(s.Stdout, len(lead), e.Text)
	return nil
}

// follow prints what happens behind an event. It gives up when the node has not answered for the time-out.
func (c *Events) follow(s *Session, last string) error {
	for lost := time.Now(); ; {
		before := last
		err := c.stream(s, &last)
		if refused := new(refusedError); errors.As(err, &refused) && refused.status != http.StatusServiceUnavailable {
			return err
		}
		if before != last {
			lost = time.Now()
		}
		if time.Since(lost)+againAfter > c.Timeout {
			return fmt.Errorf("the node tells nothing any more: %w", err)
		}
		fmt.Fprintln(s.Stderr, "The connection is lost, and tried again: "+printable(err.Error()))
		<-time.After(againAfter)
	}
}

// stream prints the events of one connection, and moves last on with each. It returns why the connection
// has ended.
func (c *Events) stream(s *Session, last *string) error {
	base, err := c.base()
	if err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	silence := time.AfterFunc(max(c.Timeout, maxSilence), func() { cancel(errors.New("nothing came for too long")) })
	defer silence.Stop()
	target := base + "/v1/events/stream"
	if c.Type != "" {
		target += "?" + url.Values{"type": {c.Type}}.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return RejectedError{Text: err.Error()}
	}
	request.Header.Set("Last-Event-ID", *last)
	response, err := client.Do(request)
	if err != nil {
		return c.unreachable(base, err)
	}
	defer func() { _ = response.Body.Close() }() // It is read no further.
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
		_, err := read(base, response.StatusCode, text, nil)
		return err
	}
	return readEvents(response.Body, func(id string, data []byte) error {
		silence.Reset(max(c.Timeout, maxSilence))
		*last = id
		if len(data) == 0 {
			return nil // A beat.
		}
		var e management.Event
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("%s does not answer as a node does: %w", base, err)
		}
		return printEvent(s, e)
	})
}

// readEvents reads a stream until it ends, and tells of each event. An event has data in one line; a beat has none.
func readEvents(r io.Reader, tell func(id string, data []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEventBytes)
	id, data := "", []byte(nil)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			if err := tell(id, data); err != nil {
				return err
			}
			data = nil
		case name == "id":
			id = value
		case name == "data":
			data = []byte(value)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errors.New("the node has ended the connection")
}

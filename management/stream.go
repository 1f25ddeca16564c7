// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

// A route with a stream answers by Server-sent events until its client goes away, the server
// closes, or the client is too slow ([Server.stream]). Each write has a time of its own, and places
// are apart from those of other requests, so that those who watch keep nobody else from asking.

const (
	// maxStreams is how many streams are answered at a time, and how many connections there may be for
	// them besides the configured ones.
	maxStreams = 8
	// beatEvery is how often a stream in which nothing happens says that it is there: more often than
	// proxies give up on connections.
	beatEvery = 10 * time.Second
	// reconnectAfter is how long a client waits before it connects again.
	reconnectAfter = time.Second
	// lastEventHeader is the header by which a client says with which event it had come to.
	lastEventHeader = "Last-Event-ID"
)

// Streams counts those who watch.
type Streams struct {
	Open int    // Streams that are being answered.
	Slow uint64 // Streams that were ended since the start because their clients did not read.
}

// Streams returns how many streams are answered, and how many were ended for being slow.
func (s *Server) Streams() Streams { return Streams{Open: len(s.streams), Slow: s.slow.Load()} }

// Stream is an answer that goes on until its context ends. Its methods are for one goroutine.
type Stream struct {
	w     http.ResponseWriter
	conn  *http.ResponseController
	text  bytes.Buffer
	begun bool // Something was sent, so that the status is 200.

	admitted func() bool // The client would still be accepted.
}

// errWithdrawn ends a stream whose client would not be accepted any more.
var errWithdrawn = errors.New("management: the certificate of the client is not accepted any more")

// Send sends one event: its id, by which a client goes on behind it, its type, and a value that is
// encoded as JSON. The error says that the client is gone, or has not read for 5 seconds.
func (s *Stream) Send(id, kind string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	s.text.Reset()
	fmt.Fprintf(&s.text, "id: %s\nevent: %s\ndata: %s\n\n", oneLine(id), oneLine(kind), data)
	return s.flush()
}

// Beat says that nothing has happened, so that whatever is between the two ends keeps the
// connection, and a client that is gone is noticed. The id is that of the last event that
// the client need not get when it connects again. The first beat begins the answer. The error says that the
// client is gone, has not read for 5 seconds, or has a certificate that is not accepted any more: so a stream beats
// every 10 seconds also while events come.
func (s *Stream) Beat(id string) error {
	if !s.admitted() {
		return errWithdrawn
	}
	s.text.Reset()
	if s.begun {
		s.text.WriteString(": nothing has happened\n")
	} else {
		fmt.Fprintf(&s.text, "retry: %d\n", reconnectAfter.Milliseconds())
	}
	fmt.Fprintf(&s.text, "id: %s\n\n", oneLine(id))
	return s.flush()
}

// flush writes what was prepared, within the time for it.
func (s *Stream) flush() error {
	s.begun = true
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write(s.text.Bytes()); err != nil {
		return err
	}
	return s.conn.Flush()
}

// oneLine keeps text from being taken for several lines of a stream.
func oneLine(text string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(text) }

// stream answers a request by a stream.
func (s *Server) stream(route Route, w http.ResponseWriter, r *http.Request) {
	defer s.abort(route)
	query, err := parameters(r.URL.RawQuery, route)
	if err != nil {
		status, body := s.failed(route, err)
		s.write(w, status, body)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no") // A proxy must not collect events before it passes them on.
	if r.Method == http.MethodHead {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.watched, cancel)()
	out := &Stream{w: w, conn: http.NewResponseController(w), admitted: func() bool { return s.admits(r) }}
	// The server takes the end of the time for reading for the end of the client. An error says that
	// there is no connection.
	_ = out.conn.SetReadDeadline(time.Time{})
	err = route.Stream(ctx, Request{path: r.PathValue, query: query, last: r.Header.Get(lastEventHeader)}, out)
	switch {
	case err != nil && !out.begun:
		status, body := s.failed(route, err)
		s.write(w, status, body)
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.slow.Add(1)
		s.log.WarnContext(ctx, "management ends a stream whose client does not read", "path", route.Path, "peer", r.RemoteAddr, "slow", s.slow.Load())
	}
}

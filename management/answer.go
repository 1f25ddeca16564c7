// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Every request comes in at [Server.serve]: what no route may answer is refused, then the
// route answers within bounds of time and number ([Server.answering]), and its value or
// error is written as JSON.

// serve handles every request: first what is refused on any route, then the route.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if err := s.acceptable(r); err != nil {
		if err.Status == http.StatusMethodNotAllowed {
			header.Set("Allow", s.found(r).allowed())
		}
		header.Set("Connection", "close") // A body may follow, which is not read.
		s.write(w, err.Status, failure(err))
		return
	}
	s.mux.ServeHTTP(w, r)
}

// acceptable refuses what no route answers.
func (s *Server) acceptable(r *http.Request) *Error {
	escaped := r.URL.EscapedPath()
	methods := s.found(r)
	route, answers := methods.route(r.Method)
	switch {
	case !s.admits(r):
		return refuse(http.StatusForbidden, "the certificate is not accepted any more")
	case !answers && methods.changes():
		return refuse(http.StatusMethodNotAllowed, "%s is not possible: this only answers %s, for it changes something", clip(r.Method), methods.allowed())
	case !answers:
		return refuse(http.StatusMethodNotAllowed, "%s is not possible: this only answers GET and HEAD", clip(r.Method))
	case r.ContentLength != 0 && route.Body == 0:
		return refuse(http.StatusBadRequest, "the request has a body, and none is read")
	case r.ContentLength < 0:
		return refuse(http.StatusLengthRequired, "the request does not say how long its body is")
	case r.ContentLength > route.Body:
		return refuse(http.StatusRequestEntityTooLarge, "the body has %d bytes, more than %d: split it over several requests", r.ContentLength, route.Body)
	case s.cfg.TLS.IsZero() && !s.open && !local(r.Host):
		// A web page in a browser on this machine must not read from here by a host name
		// that it has made to point at the loopback interface. With TLS it would have to
		// show a certificate.
		return refuse(http.StatusForbidden, "the host %q is not this machine: ask for localhost or 127.0.0.1", clip(r.Host))
	case escaped != path.Clean(escaped):
		return refuse(http.StatusBadRequest, `the path has empty segments, "." or "..": write them in percent encoding if they are part of a name`)
	}
	if methods == nil {
		return refuse(http.StatusNotFound, "there is nothing at %s", clip(escaped))
	}
	return s.meant(r, route.Operation)
}

// found returns the routes at the path of a request, nil if there are none.
func (s *Server) found(r *http.Request) methods {
	_, pattern := s.mux.Handler(r)
	return s.routes[pattern]
}

// meant refuses an operation that no person may have meant: a page in a browser on this
// machine can send a form without its user's knowledge. But a form cannot have our
// header, and a script's request names the page that sent it.
func (s *Server) meant(r *http.Request, operation string) *Error {
	switch {
	case operation == "":
		return nil
	case r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "":
		s.log.WarnContext(r.Context(), "management refuses an operation that a web page asks for", "operation", operation, "peer", r.RemoteAddr, "origin", clip(r.Header.Get("Origin")))
		return refuse(http.StatusForbidden, "a web page asks for this: no browser may")
	case len(r.Header.Values(OperatorHeader)) != 1 || r.Header.Get(OperatorHeader) != operation:
		return refuse(http.StatusForbidden, "this changes something: say that it is meant, by the header %s: %s", OperatorHeader, operation)
	}
	return nil
}

// local reports whether the host of a request names the loopback interface.
func local(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return loopback(strings.ToLower(host))
}

// answering returns the handler of a route.
func (s *Server) answering(route Route) http.Handler {
	places := s.slots
	switch {
	case route.Probe:
		places = s.probes
	case route.Stream != nil:
		places = s.streams
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if route.Stream != nil {
			ctx, end := context.WithCancelCause(r.Context())
			defer end(nil)
			_, stranger := s.who(r)
			me := readerOf(r, stranger == nil, end)
			if !s.audience.join(me, cap(places)) {
				s.full(w, places)
				return
			}
			defer s.audience.leave(me)
			r = r.WithContext(ctx)
		}
		if !s.takes(route, places) {
			s.full(w, places)
			return
		}
		defer func() { <-places }()
		defer occupy(r.Context())()
		by, refused := s.asks(route, r)
		if refused != nil {
			if refused.Status == http.StatusUnauthorized && s.cfg.Operators.TokenFile != "" {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			s.write(w, refused.Status, failure(refused))
			return
		}
		switch {
		case route.Stream != nil:
			s.stream(route, w, r)
			return
		case route.Handler != nil:
			extend(route, w)
			s.handle(route, w, r)
			return
		}
		status, body := s.answer(route, w, r)
		if route.Operation != "" {
			s.changed(route, r, by, body)
		}
		s.write(w, status, body)
	})
}

// takes takes a place. A stream waits for that of the one that it has displaced.
func (s *Server) takes(route Route, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	if route.Stream == nil {
		return false
	}
	select {
	case places <- struct{}{}:
		return true
	case <-time.After(writeTimeout): // So long a stream may write that has been displaced.
		return false
	}
}

// full answers a request for which there is no place.
func (s *Server) full(w http.ResponseWriter, places chan struct{}) {
	w.Header().Set("Retry-After", "1")
	s.write(w, http.StatusServiceUnavailable, Failure{Error: fmt.Sprintf("%d requests are being answered already: ask again later", cap(places))})
}

// extend gives a connection the time that the answer of a route takes, once the request has been read. The server waits
// for the client to go away while it answers, and takes the end of the time for reading for that.
func extend(route Route, w http.ResponseWriter) {
	if route.Limit > 0 {
		until, connection := time.Now().Add(route.Limit+writeTimeout), http.NewResponseController(w)
		_ = errors.Join(connection.SetReadDeadline(until), connection.SetWriteDeadline(until)) // An error says that there is no connection.
	}
}

// asks returns who asks for a change, or why nobody does who may.
func (s *Server) asks(route Route, r *http.Request) (by string, refused *Error) {
	switch {
	case route.Operation == "":
		return "", nil
	case !route.Authorized:
		by = "somebody at " + r.RemoteAddr
		if name := holder(r); name != "" {
			by = "certificate " + name
		}
	default:
		if by, refused = s.who(r); refused != nil {
			s.refused(r, route.Operation, refused)
			return "", refused
		}
	}
	s.log.WarnContext(r.Context(), "an operator asks for a change", "operation", route.Operation, "path", r.URL.Path, "by", by, "peer", r.RemoteAddr)
	return by, nil
}

// changed tells of an operation that was answered.
func (s *Server) changed(route Route, r *http.Request, by string, body any) {
	c := Change{Operation: route.Operation, Path: r.URL.Path, Query: r.URL.RawQuery, By: by}
	if failed, ok := body.(Failure); ok {
		c.Err = errors.New(strings.Join(append([]string{failed.Error}, failed.Reasons...), "; "))
	}
	s.tell(c)
}

// limit is how long the answer of a route may take.
func (s *Server) limit(route Route) time.Duration { return cmp.Or(route.Limit, s.cfg.RequestTimeout) }

// handle lets the handler of a route answer. Output that it wrote before a panic cannot
// be taken back: the connection ends.
func (s *Server) handle(route Route, w http.ResponseWriter, r *http.Request) {
	defer s.abort(route)
	if _, err := parameters(r.URL.RawQuery, route); err != nil {
		status, body := s.failed(route, err)
		s.write(w, status, body)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.limit(route))
	defer cancel()
	route.Handler.ServeHTTP(w, r.WithContext(ctx))
}

// abort is deferred where output cannot be taken back: it logs a panic, and ends the connection.
func (s *Server) abort(route Route) {
	if p := recover(); p != nil {
		s.log.Error("an answer panicked", "path", route.Path, "panic", p, "stack", string(debug.Stack()))
		panic(http.ErrAbortHandler)
	}
}

// answer finds the answer of a route, whatever happens to it.
func (s *Server) answer(route Route, w http.ResponseWriter, r *http.Request) (status int, body any) {
	defer func() {
		if p := recover(); p != nil {
			s.log.ErrorContext(r.Context(), "an answer panicked", "path", route.Path, "panic", p, "stack", string(debug.Stack()))
			status, body = http.StatusInternalServerError, Failure{Error: "the answer panicked; the log of the node has more"}
		}
	}()
	query, err := parameters(r.URL.RawQuery, route)
	if err != nil {
		return s.failed(route, err)
	}
	// The length is bounded by acceptable, and the time by what the connection may take.
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return s.failed(route, refuse(http.StatusBadRequest, "the body has not come: %v", err))
	}
	extend(route, w)
	ctx, cancel := context.WithTimeout(r.Context(), s.limit(route))
	defer cancel()
	value, err := route.Answer(ctx, Request{path: r.PathValue, query: query, body: text, content: r.Header.Get("Content-Type")})
	if err != nil {
		return s.failed(route, err)
	}
	return http.StatusOK, value
}

// failed returns the status and the body for an error.
func (s *Server) failed(route Route, err error) (int, Failure) {
	e := asError(err, s.limit(route))
	return e.Status, failure(e)
}

// failure returns the body for an error.
func failure(e *Error) Failure { return Failure{Error: e.Text, Reasons: e.Reasons} }

// write encodes the whole body before the first byte leaves, so that a value
// that cannot be encoded is an error and not half an answer.
func (s *Server) write(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		s.log.Error("an answer cannot be encoded", "error", err)
		status, text = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be encoded; the log of the node has more"}`)
	}
	text = append(text, '\n')
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // The client has gone away.
}

// clip shortens text of a request for the text of an error.
func clip(text string) string {
	if len(text) > 64 {
		return strings.ToValidUTF8(text[:64], "") + "..."
	}
	return text
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A module describes what it answers by [Route], [Request] and [Error]; the mux that
// finds the route of a path is at the end ([newMux]).

// Route is a path and the function that answers it.
type Route struct {
	// Path is a pattern of [http.ServeMux], without method and host:
	// "/v1/things/{thing}".
	Path string

	// Query are the names of the parameters that the route understands. Others are
	// refused, so that a typing error does not give a wrong answer.
	Query []string

	// Operation names what a request to this route changes, "" if it changes nothing. A
	// route with an operation answers only POST, and only a request whose header
	// [OperatorHeader] has this name and that no web page has sent. It needs an Answer, whose
	// error says that nothing was done, for [WithChanges].
	Operation string

	// Authorized keeps a route with an operation to operators, see [OperatorsConfig].
	// Without it, whoever may ask anything may ask for the operation: it is for what only
	// helps whoever has an outage, and has a switch of its own.
	Authorized bool

	// Limit bounds the answer in place of [Config.RequestTimeout], for an operation that
	// takes longer; zero means request-timeout.
	Limit time.Duration

	// Probe gives the route room of its own, for health checks, which must be answered
	// under any load.
	Probe bool

	// Answer returns a value to be encoded as JSON, or an error; an error that wraps an
	// [Error] says its status, others are 500. It is called on the goroutine of the
	// connection, several at a time, and must return soon after ctx has ended.
	Answer func(ctx context.Context, r Request) (any, error)

	// Handler is used instead of Answer for an answer that is not JSON, such as metrics,
	// within the same bounds. A route has exactly one of the two.
	Handler http.Handler
}

// OperatorHeader is the header that names the operation of a request that changes
// something. A form of a web page cannot send the header, and a script of a page can send
// it only to the server that the page came from.
const OperatorHeader = "Quorate-Operator"

// Request is a request to a route.
type Request struct {
	path  func(name string) string
	query url.Values
}

// Path returns the part of the path in place of {name}, unescaped.
func (r Request) Path(name string) string { return r.path(name) }

// Query returns a parameter, "" if it is absent.
func (r Request) Query(name string) string { return r.query.Get(name) }

// QueryInt returns a parameter as a number from low to high, or other if it is absent.
// The error is an [Error] of status 400.
func (r Request) QueryInt(name string, low, high, other int) (int, error) {
	if !r.query.Has(name) {
		return other, nil
	}
	n, err := strconv.Atoi(r.Query(name))
	if err != nil || n < low || n > high {
		return 0, refuse(http.StatusBadRequest, "%s: %q is not a number from %d to %d", name, r.Query(name), low, high)
	}
	return n, nil
}

// Error is the answer to a request that failed.
type Error struct {
	Status  int      // The status of HTTP, 400 to 599.
	Text    string   // What is wrong, and what to do.
	Reasons []string // Further reasons, when there is more than one.
}

// Error returns the text and the reasons.
func (e *Error) Error() string {
	return strings.Join(append([]string{e.Text}, e.Reasons...), "; ")
}

// Failure is the JSON form of an [Error].
type Failure struct {
	Error   string   `json:"error"`
	Reasons []string `json:"reasons,omitempty"`
}

// refuse returns an [Error].
func refuse(status int, format string, args ...any) *Error {
	return &Error{Status: status, Text: fmt.Sprintf(format, args...)}
}

// newMux builds the mux of all routes.
func newMux(routes []Route, serve func(Route) http.Handler) (mux *http.ServeMux, err error) {
	path := ""
	defer func() {
		if r := recover(); r != nil { // A ServeMux panics at a pattern that makes no sense.
			mux, err = nil, fmt.Errorf("management: route %q: %v", path, r)
		}
	}()
	mux = http.NewServeMux()
	for _, route := range routes {
		path = route.Path
		if !strings.HasPrefix(path, "/") || (route.Answer == nil) == (route.Handler == nil) {
			return nil, fmt.Errorf("management: route %q: needs a path that begins with a slash, and either an answer or a handler", path)
		}
		if route.Authorized && route.Operation == "" {
			return nil, fmt.Errorf("management: route %q: only an operation is kept to operators", path)
		}
		if route.Operation != "" && route.Handler != nil {
			return nil, fmt.Errorf("management: route %q: an operation needs an answer, which says what has come of it, not a handler", path)
		}
		if route.Operation != "" && route.Probe {
			return nil, fmt.Errorf("management: route %q: a health check changes nothing", path)
		}
		mux.Handle(path, serve(route))
	}
	return mux, nil
}

// parameters parses a query, of which every parameter must be known.
func parameters(raw string, known []string) (url.Values, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the query is not valid: %v", err)
	}
	var faults []string
	for name, given := range values {
		switch {
		case !slices.Contains(known, name) && len(known) == 0:
			faults = append(faults, fmt.Sprintf("unknown parameter %q; there are none here", name))
		case !slices.Contains(known, name):
			faults = append(faults, fmt.Sprintf("unknown parameter %q; there are %s", name, strings.Join(known, ", ")))
		case len(given) > 1:
			faults = append(faults, fmt.Sprintf("parameter %q was given %d times", name, len(given)))
		}
	}
	if len(faults) == 0 {
		return values, nil
	}
	slices.Sort(faults)
	if len(faults) == 1 {
		return nil, refuse(http.StatusBadRequest, "%s", faults[0])
	}
	return nil, &Error{Status: http.StatusBadRequest, Text: "the query is not valid", Reasons: faults}
}

// asError returns an error of an answer as an [Error].
func asError(err error, limit fmt.Stringer) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return refuse(http.StatusGatewayTimeout, "no answer within %v: %v", limit, err)
	}
	if errors.Is(err, context.Canceled) {
		return refuse(http.StatusServiceUnavailable, "the node is closing, or the request was given up")
	}
	return refuse(http.StatusInternalServerError, "%v", err)
}

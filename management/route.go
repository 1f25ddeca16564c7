// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"mime/multipart"
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

	// Summary says in a few words what the route answers or does, and Result is a value of the type of its answer:
	// both are for the description of the routes, see [OpenAPI].
	Summary string
	Result  any

	// Query are the names of the parameters that the route understands. Others are
	// refused, so that a typing error does not give a wrong answer.
	Query []string

	// About says of parameters, of the path and of the query, what they stand for, where a name
	// does not tell, see [OpenAPI].
	About map[string]string

	repeated bool // Its parameters may be given several times.

	// Method is the method that a route with an operation answers: POST, PUT or DELETE. Empty, it is POST, and
	// GET and HEAD where there is no operation. Routes of one path have different methods.
	Method string

	// Operation names what a request to this route changes, "" if it changes nothing. A
	// route with an operation answers only its method, and only a request whose header
	// [OperatorHeader] has this name and that no web page has sent. It needs an Answer, whose
	// error says that nothing was done, for [WithChanges].
	Operation string

	// Authorized keeps a route with an operation to operators, see [OperatorsConfig].
	// Without it, whoever may ask anything may ask for the operation: it is for what only
	// helps whoever has an outage, and has a switch of its own.
	Authorized bool

	// Body is the most bytes of the body that a request to the route may have, for an operation
	// that is told more than a query has room for. 0: a request with a body is refused.
	Body int64

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

	// Stream is used instead of Answer for an answer by Server-sent events, which goes on until the
	// context ends: it sends events as they happen, and a beat now and then ([Stream.Beat]). There is room
	// for 8 streams besides other requests. Its error ends the stream; the client hears of
	// it if nothing was sent before.
	Stream func(ctx context.Context, r Request, out *Stream) error

	// Handler is used instead of Answer for an answer that is not JSON, such as metrics,
	// within the same bounds. A route has exactly one of the three.
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
	body  []byte
	last  string

	content string // The type of the body.
}

// Form returns the fields of a body that is a form, as it is sent by "curl -d" and "curl -F". The error is an [Error]
// of status 400.
func (r Request) Form() (url.Values, error) {
	kind, params, err := mime.ParseMediaType(r.content)
	switch {
	case err == nil && kind == "application/x-www-form-urlencoded":
		if fields, err := url.ParseQuery(string(r.body)); err == nil {
			return fields, nil
		}
	case err == nil && kind == "multipart/form-data" && params["boundary"] != "":
		form, err := multipart.NewReader(bytes.NewReader(r.body), params["boundary"]).ReadForm(int64(len(r.body)))
		if err == nil {
			defer func() { _ = form.RemoveAll() }() // All of it fits into memory: there are no files.
			return form.Value, nil
		}
	}
	return nil, refuse(http.StatusBadRequest, "the body is not a form, as application/x-www-form-urlencoded or multipart/form-data")
}

// LastEventID returns the id of the last event that the client of a stream has got, empty if it has got
// none.
func (r Request) LastEventID() string { return r.last }

// Body returns the body of a request to a route that takes one, at most [Route.Body] bytes.
func (r Request) Body() []byte { return r.body }

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
		return 0, refuse(http.StatusBadRequest, "%s: %q is not a number from %d to %d", name, clip(r.Query(name)), low, high)
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

// methods are the routes of one path, by the method that each answers; GET stands for HEAD too.
type methods map[string]Route

// routes are all routes of a server, by their paths.
type routes map[string]methods

// route returns the route that answers a method. A path without routes answers GET and HEAD, with status 404.
func (m methods) route(method string) (route Route, answers bool) {
	method = answeredAs(method)
	route, answers = m[method]
	return route, answers || m == nil && method == http.MethodGet
}

// changes reports whether there is a route with an operation.
func (m methods) changes() bool {
	for _, route := range m {
		if route.Operation != "" {
			return true
		}
	}
	return false
}

// allowed names the methods that are answered.
func (m methods) allowed() string {
	all := slices.Sorted(maps.Keys(m))
	if i := slices.Index(all, http.MethodGet); i >= 0 || len(m) == 0 {
		all = slices.Insert(all, i+1, http.MethodHead)
	}
	if len(m) == 0 {
		all = []string{http.MethodGet, http.MethodHead}
	}
	return strings.Join(all, ", ")
}

// method returns the method that a route answers; GET stands for HEAD too.
func (r Route) method() string {
	switch {
	case r.Operation == "":
		return http.MethodGet
	case r.Method == "":
		return http.MethodPost
	}
	return r.Method
}

// newMux builds the mux of all routes.
func newMux(given []Route, serve func(Route) http.Handler) (mux *http.ServeMux, all routes, err error) {
	path := ""
	defer func() {
		if r := recover(); r != nil { // A ServeMux panics at a pattern that makes no sense.
			mux, err = nil, fmt.Errorf("management: route %q: %v", path, r)
		}
	}()
	mux, all = http.NewServeMux(), routes{}
	handlers := map[string]map[string]http.Handler{} // By path and method.
	for _, route := range given {
		path = route.Path
		if err := route.fault(); err != nil {
			return nil, nil, fmt.Errorf("management: route %q: %w", path, err)
		}
		method := route.method()
		if _, twice := all[path][method]; twice {
			return nil, nil, fmt.Errorf("management: route %q: conflicts with another one for %s", path, method)
		}
		if handlers[path] == nil {
			all[path], handlers[path] = methods{}, map[string]http.Handler{}
			mux.Handle(path, dispatch(handlers[path]))
		}
		all[path][method], handlers[path][method] = route, serve(route)
	}
	return mux, all, nil
}

// dispatch hands a request to the route of its method; whether there is one was found out before.
func dispatch(handlers map[string]http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers[answeredAs(r.Method)].ServeHTTP(w, r)
	})
}

// answeredAs returns the method whose route answers a method: HEAD is answered as GET.
func answeredAs(method string) string {
	if method == http.MethodHead {
		return http.MethodGet
	}
	return method
}

// fault returns what makes no sense about a route, nil if there is nothing.
func (r Route) fault() error {
	switch {
	case !strings.HasPrefix(r.Path, "/") || r.ways() != 1:
		return errors.New("needs a path that begins with a slash, and either an answer, a stream or a handler")
	case r.Authorized && r.Operation == "":
		return errors.New("only an operation is kept to operators")
	case r.Operation != "" && r.Answer == nil:
		return errors.New("an operation needs an answer, which says what has come of it, not a handler or a stream")
	case r.Body != 0 && r.Operation == "":
		return errors.New("only an operation has a body")
	case r.Operation != "" && r.Probe:
		return errors.New("a health check changes nothing")
	case r.Method != "" && (r.Operation == "" || !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodDelete}, r.Method)):
		return fmt.Errorf("the method %q is not that of an operation: POST, PUT or DELETE", r.Method)
	}
	return nil
}

// ways counts in how many ways a route would answer.
func (r Route) ways() (n int) {
	for _, has := range []bool{r.Answer != nil, r.Stream != nil, r.Handler != nil} {
		if has {
			n++
		}
	}
	return n
}

// faultsNamed is how many faults of a query its answer names at most.
const faultsNamed = 8

// parameters parses a query, of which every parameter must be known.
func parameters(raw string, route Route) (url.Values, error) {
	known := route.Query
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the query is not valid: %v", err)
	}
	var faults []string
	for name, given := range values {
		switch {
		case !slices.Contains(known, name) && len(known) == 0:
			faults = append(faults, fmt.Sprintf("unknown parameter %q; there are none here", clip(name)))
		case !slices.Contains(known, name):
			faults = append(faults, fmt.Sprintf("unknown parameter %q; there are %s", clip(name), strings.Join(known, ", ")))
		case len(given) > 1 && !route.repeated:
			faults = append(faults, fmt.Sprintf("parameter %q was given %d times", name, len(given)))
		}
	}
	if len(faults) == 0 {
		return values, nil
	}
	slices.Sort(faults)
	if more := len(faults) - faultsNamed; more > 0 {
		faults = append(faults[:faultsNamed], fmt.Sprintf("and %d others", more))
	}
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

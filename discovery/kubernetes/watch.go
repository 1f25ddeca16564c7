// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

// One conversation with the API server: list all objects page by page, tell them, then
// watch from the version of the list on. A watch that ends or breaks off is renewed
// from the last version that was heard of; when that version is gone, the conversation
// ends and the next one lists again.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/follow"

	"github.com/quorate/quorate/config/field"
)

const (
	// pageSize is the number of objects in one page. An object has 5 to 50 kB, so that a
	// page is far from maxPageBytes, and 10,000 objects are 40 requests.
	pageSize = 250
	// maxPageBytes is the longest page: 250 objects of 64 kB.
	maxPageBytes = 16 << 20
	// maxEventBytes is the longest event: the API server stores no object of more than
	// 1.5 MiB.
	maxEventBytes = 4 << 20
	// maxPages is the number of pages after which a list counts as one without an end: four
	// times as many as the contact points of the largest answer fill.
	maxPages = 4 * discovery.MaxTargets / pageSize
	// maxRestarts is how many times a list is begun anew because its next page is gone.
	maxRestarts = 3
	// listTimeouts is how many times the limit of a request the pages of a list may take
	// together.
	listTimeouts = 6
	// briefWatch is the time before which a watch must not end: the server refuses a watch
	// that ends sooner, without saying so.
	briefWatch = time.Second
)

// source holds the conversations about one kind of objects in one namespace.
type source struct {
	client    *client
	resource  resource
	namespace string
	// timeout is the limit of a request, watchTimeout how long a watch lasts.
	timeout, watchTimeout time.Duration
	// brief is how long a watch must last not to count as refused.
	brief time.Duration
}

// follow is a [follow.Source]: the key is a label selector.
func (s *source) follow(ctx context.Context, selector string, tell func(*store)) error {
	return s.client.api.Overdue(ctx, s.converse(ctx, selector, tell))
}

func (s *source) converse(ctx context.Context, selector string, tell func(*store)) error {
	found, version, err := s.listAgain(ctx, selector)
	if err != nil {
		return err
	}
	tell(found)
	for {
		began := time.Now()
		version, err = s.watch(ctx, selector, version, found)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case gone(err):
			return fmt.Errorf("%w: %w", err, follow.ErrAgain)
		case err != nil:
			return err
		case time.Since(began) < s.brief:
			return fmt.Errorf("%w: a watch of %s ends as soon as it begins", ErrMalformed, s.resource.name)
		}
	}
}

// listAgain lists, from the beginning if the server has forgotten the list before its
// last page.
func (s *source) listAgain(ctx context.Context, selector string) (*store, string, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeouts*s.timeout)
	defer cancel()
	for restart := 0; ; restart++ {
		found, version, err := s.list(ctx, selector)
		if !gone(err) || restart == maxRestarts {
			return found, version, err
		}
	}
}

// list returns the objects and the version of the list. It asks for the newest state, and not
// for that in the cache of one of several servers: a node must not found a cluster by what was
// true a minute ago.
func (s *source) list(ctx context.Context, selector string) (*store, string, error) {
	found := newStore(fmt.Sprintf("%s with %q in namespace %q", s.resource.name, field.Clip(selector), s.namespace))
	next := ""
	for range maxPages {
		page, err := s.page(ctx, selector, next)
		if err != nil {
			return nil, "", err
		}
		for _, item := range page.Items {
			o, err := s.resource.decode(item)
			if err != nil {
				return nil, "", fmt.Errorf("%w: %w", ErrMalformed, err)
			}
			if err := found.put(o); err != nil {
				return nil, "", fmt.Errorf("%s: %w", found.where, err)
			}
		}
		if page.Metadata.Continue == "" {
			return found, page.Metadata.ResourceVersion, nil
		}
		next = page.Metadata.Continue
	}
	return nil, "", fmt.Errorf("%w: a list of %s has more than %d pages", ErrMalformed, s.resource.name, maxPages)
}

type listJSON struct {
	Kind     string `json:"kind"`
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

func (s *source) page(ctx context.Context, selector, next string) (listJSON, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	query := url.Values{"labelSelector": {selector}, "limit": {strconv.Itoa(pageSize)}}
	if next != "" {
		query.Set("continue", next)
	}
	body, err := s.client.get(ctx, s.request("list", query))
	if err != nil {
		return listJSON{}, err
	}
	defer func() { _ = body.Close() }() // It was only read.
	page, err := decodeList(body, s.resource.list)
	if err != nil && ctx.Err() != nil {
		// Below HTTP/2 a body that is cut off by the deadline only says that it was closed.
		return listJSON{}, ctx.Err()
	}
	return page, err
}

// decodeList reads one page of a list of a kind.
func decodeList(body io.Reader, kind string) (listJSON, error) {
	var page listJSON
	data, err := io.ReadAll(io.LimitReader(body, maxPageBytes+1))
	if err != nil {
		return listJSON{}, fmt.Errorf("a list broke off after %d bytes: %w", len(data), err)
	}
	if len(data) > maxPageBytes {
		return listJSON{}, fmt.Errorf("%w: a page of a list has more than %d bytes", ErrMalformed, maxPageBytes)
	}
	if err := json.Unmarshal(data, &page); err != nil {
		return listJSON{}, fmt.Errorf("%w: a list that cannot be read: %w", ErrMalformed, err)
	}
	if page.Kind != kind || page.Metadata.ResourceVersion == "" {
		return listJSON{}, fmt.Errorf("%w: %q with version %q, wanted %q with a version",
			ErrMalformed, field.Clip(page.Kind), field.Clip(page.Metadata.ResourceVersion), kind)
	}
	return page, nil
}

func (s *source) request(verb string, query url.Values) request {
	return request{verb: verb, resource: s.resource, namespace: s.namespace, query: query}
}

// watch applies events to a store until the watch ends, and returns the version of the last
// event. A connection that breaks after the watch has begun is an end like any other: the next
// watch finds out whether the server is there. An event whose rest does not come is an error: a
// proxy that keeps the connection may do the same to every further watch.
func (s *source) watch(ctx context.Context, selector, version string, found *store) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.watchTimeout+s.timeout)
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	r := s.request("watch", url.Values{
		"labelSelector": {selector}, "watch": {"1"}, "resourceVersion": {version},
		"allowWatchBookmarks": {"true"}, "timeoutSeconds": {strconv.Itoa(int(s.watchTimeout.Seconds()))},
	})
	body, err := s.client.get(ctx, r)
	if err != nil {
		return version, err
	}
	defer func() { _ = body.Close() }() // It was only read.
	events := newEvents(body, s.timeout, func() { giveUp(errHalf) })
	for {
		e, err := events.next()
		if errors.Is(err, errBrokenOff) {
			if cause := context.Cause(ctx); errors.Is(cause, errHalf) {
				return version, cause
			}
			return version, nil
		}
		if err == nil {
			version, err = s.apply(r, e, version, found)
		}
		if err != nil {
			return version, err
		}
	}
}

// event is one line of a watch.
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

var (
	// errBrokenOff says that a watch has ended, in order or not.
	errBrokenOff = errors.New("the watch has ended")
	// errHalf says that an event has begun and has not ended within the limit of a request.
	errHalf = fmt.Errorf("the rest of an event of the watch does not come: %w", context.DeadlineExceeded)
)

// eventReader reads the events of a watch, each of a bounded length. Between events a watch may be
// silent for as long as it lasts; an event that has begun must end within limit, or late is
// called, which makes the body end.
type eventReader struct {
	body    *io.LimitedReader
	decoder *json.Decoder
	limit   time.Duration
	late    func()
	begun   *time.Timer // runs late from the first byte of an event on; nil between events
}

func newEvents(body io.Reader, limit time.Duration, late func()) *eventReader {
	e := &eventReader{body: &io.LimitedReader{R: body}, limit: limit, late: late}
	e.decoder = json.NewDecoder(e)
	return e
}

// Read implements [io.Reader], for the decoder.
func (e *eventReader) Read(p []byte) (int, error) {
	n, err := e.body.Read(p)
	e.begin(bytes.NewReader(p[:n]))
	return n, err
}

// begin starts the time of an event if a text has the first byte of one. Events are parted by
// white space.
func (e *eventReader) begin(text io.Reader) {
	var first [1]byte
	for e.begun == nil {
		if _, err := io.ReadFull(text, first[:]); err != nil {
			return
		}
		if len(bytes.TrimSpace(first[:])) > 0 {
			e.begun = time.AfterFunc(e.limit, e.late) // Ends with end, which does not wait: late only cancels.
		}
	}
}

// end ends the time of an event.
func (e *eventReader) end() {
	if e.begun != nil {
		e.begun.Stop()
		e.begun = nil
	}
}

// next waits for the next event. The error wraps errBrokenOff at the end of the body, in the
// middle of an event too, and [ErrMalformed] if what comes is no event.
func (e *eventReader) next() (event, error) {
	e.body.N = maxEventBytes
	e.begin(e.decoder.Buffered()) // What was read beyond the event before.
	defer e.end()
	var got event
	err := e.decoder.Decode(&got)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil && got.Type != "" && len(got.Object) > 0:
		return got, nil
	case err == nil:
		return event{}, fmt.Errorf("%w: an event without a type or an object", ErrMalformed)
	case e.body.N == 0:
		return event{}, fmt.Errorf("%w: an event of more than %d bytes", ErrMalformed, maxEventBytes)
	case errors.As(err, &syntax), errors.As(err, &kind):
		return event{}, fmt.Errorf("%w: an event that cannot be read: %w", ErrMalformed, err)
	default:
		return event{}, fmt.Errorf("%w: %w", errBrokenOff, err)
	}
}

// apply changes a store by an event and returns the version after it.
func (s *source) apply(r request, e event, version string, found *store) (string, error) {
	switch e.Type {
	case "ADDED", "MODIFIED", "DELETED":
		o, err := s.resource.decode(e.Object)
		switch {
		case err != nil:
			return version, fmt.Errorf("%w: %w", ErrMalformed, err)
		case o.version == "":
			return version, fmt.Errorf("%w: %q without a version", ErrMalformed, field.Clip(o.name))
		case e.Type == "DELETED":
			found.remove(o.name)
		default:
			if err := found.put(o); err != nil {
				return version, fmt.Errorf("%s: %w", found.where, err)
			}
		}
		return o.version, nil
	case "BOOKMARK":
		var mark struct {
			Metadata metadata `json:"metadata"`
		}
		if err := json.Unmarshal(e.Object, &mark); err != nil || mark.Metadata.ResourceVersion == "" {
			return version, fmt.Errorf("%w: a bookmark without a version", ErrMalformed)
		}
		return mark.Metadata.ResourceVersion, nil
	case "ERROR":
		var status struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(e.Object, &status); err != nil || status.Code == 0 {
			return version, fmt.Errorf("%w: an error without a code", ErrMalformed)
		}
		return version, s.client.refusal(r, status.Code, status.Message)
	default:
		return version, fmt.Errorf("%w: an event of the type %q", ErrMalformed, field.Clip(e.Type))
	}
}

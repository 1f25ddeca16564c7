// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport/memory"
)

// Events of a node, listed and as a stream: in virtual time, on connections in memory. First what
// a stream says while members come and go; then resuming, gaps, slow clients, bounds, and the end.

// watch asks for the stream of events on a connection, and returns what reads its lines.
func watch(t *testing.T, c net.Conn, query, last string) *bufio.Reader {
	t.Helper()
	return watchAt(t, c, "/v1/events/stream"+query, last)
}

// watchAt asks for a stream.
func watchAt(t *testing.T, c net.Conn, target, last string) *bufio.Reader {
	t.Helper()
	head := "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n"
	if last != "" {
		head += "Last-Event-ID: " + last + "\r\n"
	}
	_, err := io.WriteString(c, head+"\r\n")
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.Equal(t, 200, response.StatusCode)
	require.Equal(t, "text/event-stream; charset=utf-8", response.Header.Get("Content-Type"))
	require.Equal(t, "no-store", response.Header.Get("Cache-Control"))
	body := bufio.NewReader(response.Body)
	first, err := body.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "retry: 1000\n", first)
	return body
}

// next returns the next event of a stream; beats have none.
func next(t *testing.T, r *bufio.Reader) (kind string, e management.Event) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			kind = strings.TrimSpace(name)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			require.NoError(t, json.Unmarshal([]byte(data), &e))
			require.Equal(t, kind, e.Type)
			return kind, e
		}
	}
}

// feeding serves the events of a node.
func feeding(t *testing.T, n *membership.Node) (p *pipes, s *management.Server) {
	t.Helper()
	p = newPipes()
	f := management.OpenFeed(n)
	s, err := management.ServeOn(p, management.Default(), append(f.Routes(), echo()), quiet())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, f.Close())
		require.NoError(t, f.Close())
	})
	return p, s
}

// decide has a node take decisions.
func decide(n *membership.Node, from, to int) {
	for i := from; i < to; i++ {
		n.Decisions().Record("test", machine.Decide{Topic: "test", Subject: fmt.Sprint(i), Verdict: "done", Reason: "why not"})
	}
}

// A stream tells of members that come and leave, of decisions, and of nothing else that happened before it
// began; a list has all of it. Filters select by type.
func TestEventsAreToldAsTheyHappen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memory.NewNetwork()
		n := node(t, network, 1, "10.0.0.1:7946")
		p, s := feeding(t, n)
		require.NoError(t, n.AwaitUp(t.Context()))
		synctest.Wait()
		c := p.dial()
		members := watch(t, c, "?type=member,removed", "")
		decisions := watch(t, p.dial(), "?type=decision", "")
		require.Equal(t, 2, s.Streams().Open)
		second := node(t, network, 2, "10.0.0.1:7946")
		require.NoError(t, second.AwaitUp(t.Context()))
		require.NoError(t, second.Leave(t.Context()))
		var told []string
		for len(told) == 0 || !strings.Contains(told[len(told)-1], "removed") {
			_, e := next(t, members)
			require.Equal(t, "10.0.0.2:7946#2", e.Node)
			told = append(told, e.Text)
		}
		require.Equal(t, []string{"10.0.0.2:7946#2 is joining", "10.0.0.2:7946#2 is up, it was joining"}, told[:2])
		_, e := next(t, decisions)
		require.Equal(t, "membership", e.Decision.Component)
		require.NotEmpty(t, e.Text)

		listed := events(t, p, "?type=member,leader&limit=2000")
		require.Equal(t, "member|member|leader", types(listed.Events[:3]), "what came before the streams")
		require.Equal(t, n.Self().String(), listed.Self)
		require.Len(t, events(t, p, "?limit=1").Events, 1)
		require.Empty(t, events(t, p, "?after="+listed.Last).Events)

		require.NoError(t, c.Close())
		decide(n, 0, 2) // The server notices a client that is gone.
		synctest.Wait()
		require.Equal(t, 1, s.Streams().Open)
		require.Zero(t, s.Streams().Slow)
	})
}

// types joins the types of events.
func types(events []management.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, e.Type)
	}
	return strings.Join(all, "|")
}

// events lists events.
func events(t *testing.T, p *pipes, query string) (list management.EventList) {
	t.Helper()
	c := p.dial()
	defer c.Close() //nolint:errcheck // It was read.
	_, err := io.WriteString(c, "GET /v1/events"+query+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.Equal(t, 200, response.StatusCode)
	require.NoError(t, json.NewDecoder(response.Body).Decode(&list))
	return list
}

// A client that connects again goes on where it was. What is not kept any more, and what another
// process has sent, is said to be missing.
func TestAStreamIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := node(t, memory.NewNetwork(), 1)
		p, _ := feeding(t, n)
		synctest.Wait()
		decide(n, 0, 5)
		list := events(t, p, "?type=decision")
		require.Len(t, list.Events, 5)
		stream := watch(t, p.dial(), "", list.Events[2].ID)
		for _, want := range []string{"3", "4"} {
			_, e := next(t, stream)
			require.Equal(t, want, e.Decision.Subject)
		}
		decide(n, 5, 6)
		_, e := next(t, stream)
		require.Equal(t, "5: done, because why not", e.Text)

		decide(n, 6, 2504)
		kind, gap := next(t, watch(t, p.dial(), "?type=member", list.Events[2].ID))
		require.Equal(t, "gap", kind)
		require.Equal(t, uint64(501), gap.Missed)
		again := watch(t, p.dial(), "", gap.ID)
		_, e = next(t, again)
		require.Equal(t, "504", e.Decision.Subject, "the oldest that is kept")
		list = events(t, p, "?limit=2000")
		require.Len(t, list.Events, 2000)
		require.Equal(t, e, list.Events[0])
		page := events(t, p, "?limit=3&after="+list.Events[0].ID)
		require.Equal(t, list.Events[1:4], page.Events)
		require.Equal(t, list.Events[3].ID, page.Last)

		for _, foreign := range []string{"77-3", "1-9999", "1-x", "nonsense", "-", "1-18446744073709551615"} {
			c := p.dial()
			kind, gap = next(t, watch(t, c, "", foreign))
			require.NoError(t, c.Close())
			synctest.Wait()
			require.Equal(t, "gap", kind, foreign)
			require.Zero(t, gap.Missed)
			require.Contains(t, gap.Text, "of another process, or were never sent")
		}
		require.Equal(t, "gap", events(t, p, "?limit=2000&after=77-3").Events[0].Type)
	})
}

// A client that does not read is ended, and counted. Nobody waits for it: neither the node, nor who reads.
func TestAStreamThatIsNotReadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := node(t, memory.NewNetwork(), 1)
		p, s := feeding(t, n)
		synctest.Wait()
		slow := p.dial()
		watch(t, slow, "", "")
		reader := watch(t, p.dial(), "", "")
		decide(n, 0, 3000) // More than the ring, and what any buffer would take.
		for got := ""; got != "2999"; {
			_, e := next(t, reader)
			if e.Decision != nil {
				got = e.Decision.Subject
			}
		}
		<-time.After(6 * time.Second)
		require.Equal(t, management.Streams{Open: 1, Slow: 1}, s.Streams())
		_, err := io.Copy(io.Discard, slow)
		require.NoError(t, err, "it was closed")
	})
}

// There is room for so many streams, which take none from other requests. They end at once with
// the server, and say in between that they are there.
func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := node(t, memory.NewNetwork(), 1)
		f := management.OpenFeed(n)
		defer func() { require.NoError(t, f.Close()) }()
		p, cfg := newPipes(), management.Default()
		cfg.MaxRequests, cfg.MaxConnections = 1, 1
		s, err := management.ServeOn(p, cfg, append(f.Routes(), echo()), quiet())
		require.NoError(t, err)
		var all []*bufio.Reader
		for range 8 {
			all = append(all, watch(t, p.dial(), "", ""))
		}
		ended := make(chan error, len(all))
		read := func(stream *bufio.Reader) {
			go func() { // Ends with the stream, and the test waits for it.
				_, err := io.Copy(io.Discard, stream)
				ended <- err
			}()
		}
		for _, stream := range all[1:] {
			read(stream)
		}
		for range 9 {
			c := p.dial()
			require.Equal(t, 503, get(t, c, "/v1/events/stream").StatusCode)
			require.Equal(t, 200, get(t, c, "/echo/a").StatusCode)
			require.NoError(t, c.Close())
		}
		began := time.Now()
		for beats := 0; beats < 2; {
			line, err := all[0].ReadString('\n')
			require.NoError(t, err)
			if strings.HasPrefix(line, ": nothing") {
				beats++
			}
		}
		require.Equal(t, 20*time.Second, time.Since(began))
		read(all[0])
		began = time.Now()
		require.NoError(t, s.Close())
		require.Less(t, time.Since(began), 500*time.Millisecond)
		for range all {
			require.NoError(t, <-ended)
		}
	})
}

// What makes no sense is refused before a stream begins.
func TestStreamsThatMakeNoSense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := node(t, memory.NewNetwork(), 1)
		f := management.OpenFeed(n)
		defer func() { require.NoError(t, f.Close()) }()
		fails := management.Route{Path: "/fails", Stream: func(context.Context, management.Request, *management.Stream) error { return errors.New("no film") }}
		breaks := management.Route{Path: "/breaks", Stream: func(context.Context, management.Request, *management.Stream) error { panic("film") }}
		handler, err := management.Handler(management.Default(), append(f.Routes(), fails, breaks), quiet())
		require.NoError(t, err)
		ask := func(method, target string) *httptest.ResponseRecorder {
			recorder, request := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
			request.Host = "localhost"
			handler.ServeHTTP(recorder, request)
			return recorder
		}
		for target, status := range map[string]int{
			"/v1/events/stream?type=film": 400, "/v1/events/stream?type=": 200, "/v1/events/stream?tpye=leader": 400, "/v1/events?type=leader," + url.QueryEscape("\n"): 400,
			"/v1/events?limit=2001": 400, "/fails": 500,
		} {
			method := http.MethodGet
			if status == 200 {
				method = http.MethodHead
			}
			got := ask(method, target)
			require.Equal(t, status, got.Code, target)
			if status != 200 {
				require.Equal(t, "application/json; charset=utf-8", got.Header().Get("Content-Type"))
				require.Contains(t, got.Body.String(), `{"error":`)
			}
		}
		require.Equal(t, 405, ask(http.MethodPost, "/v1/events/stream").Code)
		require.PanicsWithError(t, http.ErrAbortHandler.Error(), func() { ask(http.MethodGet, "/breaks") })
		for _, wrong := range []management.Route{{Path: "/x"}, {Path: "/x", Stream: fails.Stream, Answer: echo().Answer}, {Path: "/x", Operation: "x", Stream: fails.Stream}} {
			_, err := management.Handler(management.Default(), []management.Route{wrong})
			require.Error(t, err)
		}
	})
}

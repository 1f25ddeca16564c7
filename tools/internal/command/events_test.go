// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/tools/internal/command"
)

// What the commands events and health print, against a node that says what the test wants.

// watching runs one of these commands.
func watching(args ...string) (status int, stdout, stderr string) {
	return output(command.Program{Name: "quorate", Help: "A cluster toolkit.", Commands: []command.Command{
		{Name: "events", Help: "Events", Args: &command.Events{}},
		{Name: "health", Help: "Health", Args: &command.Health{}},
	}}, args...)
}

// happenings are two events of a node.
func happenings() []management.Event {
	at := time.Unix(1700000000, 0).UTC()
	return []management.Event{
		{ID: "1-1", At: at, Type: "member", Node: secondNode, Status: "up", Previous: "joining", Text: secondNode + " is up, it was joining"},
		{ID: "1-2", At: at.Add(time.Minute), Type: "unreachable", Node: secondNode, Status: "up", Text: secondNode + " is unreachable for a member that \x1b[31mmonitors it\n"},
	}
}

// listed is the route of the events.
func listed(asked *string) management.Route {
	return management.Route{Path: "/v1/events", Query: []string{"after", "type", "limit"}, Answer: func(_ context.Context, r management.Request) (any, error) {
		*asked = r.Query("after") + "|" + r.Query("type") + "|" + r.Query("limit")
		return management.EventList{Self: firstNode, Events: happenings(), Last: "1-2"}, nil
	}}
}

func TestEventsForPeopleAndPrograms(t *testing.T) {
	asked := ""
	url := node(t, listed(&asked))
	status, stdout, stderr := watching("events", "-node", url, "-type", "member", "-after", "1-0", "-limit", "7")
	require.Equal(t, command.StatusOK, status, stderr)
	require.Equal(t, "1-0|member|7", asked)
	fits(t, stdout)
	require.Equal(t, `asked        10.0.0.1:7946#1b0f2e3d4c5b6a79

2023-11-14T22:13:20Z  member       10.0.0.2:7946#2f3d4c5b6a790b1e is up, it was
                                   joining
2023-11-14T22:14:20Z  unreachable  10.0.0.2:7946#2f3d4c5b6a790b1e is unreachable
                                   for a member that �[31mmonitors it
`, stdout)
	_, stdout, _ = watching("--json", "events", "-node", url)
	require.Equal(t, "||20", asked)
	var got management.EventList
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, happenings(), got.Events)
}

// With -watch a command goes on where it was when the connection is lost, and gives up in the end.
func TestEventsAreWatched(t *testing.T) {
	t.Parallel()
	patience.Watch(t) // The limits of the command are real.
	var lasts []string
	film := management.Route{Path: "/v1/events/stream", Query: []string{"type"}, Stream: func(_ context.Context, r management.Request, out *management.Stream) error {
		lasts = append(lasts, r.LastEventID()+r.Query("type"))
		if len(lasts) > 2 {
			return errors.New("it is over")
		}
		id := []string{"1-3", "1-4"}[len(lasts)-1]
		return errors.Join(out.Beat(r.LastEventID()), out.Send(id, "leader", management.Event{ID: id, Type: "leader", Text: "event " + id}), out.Beat(id))
	}}
	asked := ""
	url := node(t, listed(&asked), film)
	status, stdout, stderr := watching("--json", "events", "-watch", "-type", "leader", "-timeout", "1500ms", "-node", url)
	require.Equal(t, command.StatusFailed, status)
	require.Equal(t, []string{"1-2leader", "1-3leader", "1-4leader"}, lasts, stderr)
	require.Contains(t, stderr, "The connection is lost, and tried again: the node has ended the connection\n")
	require.Contains(t, stderr, "it is over")
	var ids []string
	for line := range strings.Lines(stdout) {
		var e management.Event
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		ids = append(ids, e.ID)
	}
	require.Equal(t, []string{"1-1", "1-2", "1-3", "1-4"}, ids)

	var calls atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		switch r.URL.Path {
		case "/v1/events":
			_, _ = w.Write([]byte(`{"self":"` + firstNode + `"}`))
		default:
			_, _ = w.Write([]byte("id: 1\ndata: <html>\n\n"))
		}
	}))
	defer other.Close()
	status, _, stderr = watching("events", "-watch", "-timeout", "1ms", "-node", other.URL)
	require.Equal(t, command.StatusFailed, status)
	require.NotEmpty(t, stderr)
	status, _, stderr = watching("events", "-watch", "-timeout", "1s", "-node", other.URL)
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "does not answer as a node does")
	status, _, stderr = watching("events", "-watch", "-node", node(t, listed(&asked)))
	require.Equal(t, command.StatusFailed, status)
	require.Equal(t, "quorate: there is nothing at /v1/events/stream\n", stderr, "what is refused is not tried again")
}

// A probe that runs a command goes by the exit status.
func TestHealthAsExitStatus(t *testing.T) {
	var failed error
	check := func(name string) management.Route {
		return management.Route{Path: "/health/" + name, Probe: true, Answer: func(context.Context, management.Request) (any, error) {
			return management.HealthStatus{Status: name, Warnings: []string{"the record is lost"}}, failed
		}}
	}
	url := node(t, check("ready"), check("live"), check("startup"))
	for args, want := range map[string]string{"": "ready", "live": "live", "startup": "startup"} {
		status, stdout, stderr := watching(append([]string{"health", "-node", url}, strings.Fields(args)...)...)
		require.Equal(t, command.StatusOK, status, stderr)
		require.Equal(t, want+"\nwarning      the record is lost\n", stdout)
	}
	failed = &management.Error{Status: 503, Text: "not ready", Reasons: []string{"the node is joining, not up", "too warm"}}
	status, stdout, stderr := watching("health", "-node", url)
	require.Equal(t, command.StatusFailed, status)
	require.Empty(t, stdout)
	require.Equal(t, "quorate: not ready: the node is joining, not up: too warm\n", stderr)
	status, stdout, stderr = watching("--json", "health", "-node", url)
	require.Equal(t, command.StatusFailed, status)
	require.Empty(t, stderr)
	var got management.Failure
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, management.Failure{Error: "not ready", Reasons: []string{"the node is joining, not up", "too warm"}}, got)

	status, _, _ = watching("health", "happy", "-node", url)
	require.Equal(t, command.StatusUsage, status)
	for _, name := range []string{"events", "health"} {
		status, stdout, _ := watching(name, "-h")
		require.Equal(t, command.StatusOK, status)
		fits(t, stdout)
		require.Contains(t, stdout, "Examples:")
	}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience/logtest"
	"github.com/quorate/quorate/management"
)

// The operations of a whole node that are not about plugins or shards: reload, join, down and leave,
// over its HTTP interface.

// Whatever an operator asks for is a decision, with who asked, for what, and why it was refused.
func TestOperationsOfANodeAreDecisions(t *testing.T) {
	t.Parallel()
	o := operate(t)
	for path, operation := range map[string]string{
		"/v1/reload": cluster.ReloadOperation, "/v1/join/127.0.0.1:1": management.JoinOperation,
		"/v1/members/self/leave": management.LeaveOperation, "/v1/members/self/down?force=true": management.DownOperation,
	} {
		status, body := o.post(path, operation, "guess")
		require.Equal(t, http.StatusUnauthorized, status, body)
		status, body = o.post(path, "strike", "secret")
		require.Equal(t, http.StatusForbidden, status, body)
	}
	require.Empty(t, o.last(), "strangers take no room among the decisions")

	status, body := o.post("/v1/members/self/down", management.DownOperation, "secret")
	require.Equal(t, http.StatusConflict, status, body)
	require.Contains(t, o.last(), "management|/v1/members/self/down|down failed|asked for by token of alice: nothing was done, since this costs more")
	status, body = o.post("/v1/join/127.0.0.1:1?cluster=x", management.JoinOperation, "secret")
	require.Equal(t, http.StatusConflict, status, body)
	require.Contains(t, o.last(), "|/v1/join/127.0.0.1:1|join failed|asked for by token of alice, with cluster=x: this node is a member of cluster ")

	status, body = o.post("/v1/members/self/leave", management.LeaveOperation, "secret")
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, "management|/v1/members/self/leave|leave|asked for by token of alice", o.last())
	<-o.node.Done()
	require.NoError(t, o.node.Err(), "it left in order")
}

// No route has a node write a line of somebody else's choice, or what moves the cursor of a terminal or turns its text
// around: not by what is asked for, not by the query, and not by who asks.
func TestNoRouteMakesUpLines(t *testing.T) {
	t.Parallel()
	var text, records logtest.Buffer
	o := operate(t, cluster.WithLogger(slog.New(slog.NewMultiHandler(slog.NewTextHandler(&text, nil), slog.NewJSONHandler(&records, nil)))))
	madeUp := url.PathEscape("x\n2026/11/28 13:40:00 WARN made up\x1b[31m\u202e")
	for path, operation := range map[string]string{
		"/v1/join/" + madeUp: management.JoinOperation, "/v1/members/" + madeUp + "/leave": management.LeaveOperation,
		"/v1/members/" + madeUp + "/down?force=" + madeUp: management.DownOperation, "/v1/plugins/" + madeUp + "/swap": cluster.SwapPluginOperation,
		"/v1/kinds/" + madeUp + "/shards/1/move?to=" + madeUp: cluster.MoveShardOperation,
		"/v1/kinds/" + madeUp + "/reshard?shards=" + madeUp:   cluster.ReshardOperation,
		"/v1/kinds/" + madeUp + "/rescale?count=" + madeUp:    cluster.RescaleOperation, "/v1/data/accept-loss?group=" + madeUp: cluster.AcceptLossOperation,
		"/v1/reload?" + madeUp: cluster.ReloadOperation, "/" + madeUp: madeUp,
	} {
		o.post(path, operation, "secret")
		o.post(path, operation, madeUp)
	}
	require.Contains(t, o.last(), "WARN made up")
	require.NoError(t, o.node.Close())
	require.NotEmpty(t, records.String())
	for line := range strings.Lines(records.String()) {
		var record struct{ Msg string }
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		require.True(t, gossip.IsName(record.Msg), "%q", record.Msg)
	}
	for line := range strings.Lines(text.String()) {
		require.True(t, gossip.IsName(strings.TrimSuffix(line, "\n")) && strings.HasPrefix(line, "time="), "%q", line)
	}
}

// A node reads its files again, and says what it has taken over; what it cannot take over it names,
// and has changed nothing.
func TestAnOperatorReloadsANode(t *testing.T) {
	t.Parallel()
	o := operate(t)
	reload := func(status int) string {
		got, body := o.post("/v1/reload", cluster.ReloadOperation, "secret")
		require.Equal(t, status, got, body)
		return body
	}
	changed := func() []string {
		var got cluster.Reloaded
		require.NoError(t, json.Unmarshal([]byte(reload(http.StatusOK)), &got))
		require.Equal(t, o.node.Self().String(), got.Self)
		return got.Changed
	}
	require.Equal(t, []string{}, changed())
	o.write("path: /bin/one, sha256", "path: /bin/two, sha256")
	require.Equal(t, []string{"plugins.mover.path"}, changed())
	require.Equal(t, "/bin/two", o.plays("mover"))
	require.Equal(t, "management|/v1/reload|reload|asked for by token of alice", o.last())

	o.write("address: \"127.0.0.1:0\"", "address: \"127.0.0.1:1\"")
	require.Contains(t, reload(http.StatusConflict), "because management.address cannot change while the node runs")
	o.write("address: \"127.0.0.1:1\"", "adrress: \"127.0.0.1:1\"")
	require.Contains(t, reload(http.StatusConflict), "the files of the node have faults")
	require.Contains(t, o.last(), "reload failed|asked for by token of alice: the files of the node have faults; ")
}

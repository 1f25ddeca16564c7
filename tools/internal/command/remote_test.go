// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/tools/internal/command"
)

// The commands that ask a node over HTTP: what members, decisions and why print, as text and
// as JSON; then what they say when there is no answer; TLS; and help.

// remote runs one of the commands that ask nodes.
func remote(args ...string) (status int, stdout, stderr string) {
	return output(command.Program{Name: "quorate", Help: "A cluster toolkit.", Commands: []command.Command{
		{Name: "decisions", Help: "Decisions", Args: &command.Decisions{}},
		{Name: "form", Help: "Form", Args: command.NewForm(strings.NewReader("yes\n"), false)},
		{Name: "members", Help: "Members", Args: &command.Members{}},
		{Name: "why", Help: "Why", Args: &command.WhyCommand{}},
	}}, args...)
}

// fits requires text that a terminal of 80 columns shows as it is: no escape sequence, no
// line that is longer, none that ends in a space.
func fits(t *testing.T, text string) {
	t.Helper()
	require.NotEmpty(t, text)
	require.NotContains(t, text, "\x1b", "colours are for terminals")
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 80, line)
		require.NotRegexp(t, ` \n$`, line)
	}
}

// members is the route under which a node answers with the members of its cluster.
func members(value management.ClusterMembers) management.Route {
	return management.Route{Path: "/v1/members", Answer: func(context.Context, management.Request) (any, error) { return value, nil }}
}

// node serves routes as a node does, and returns its URL.
func node(t *testing.T, routes ...management.Route) string {
	t.Helper()
	cfg := management.Default()
	cfg.Address = "127.0.0.1:0"
	s, err := management.Serve(t.Context(), cfg, routes, management.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return "http://" + s.Address()
}

// two is what the first of two members answers, while the second is down and unreachable.
func two() management.ClusterMembers {
	return management.ClusterMembers{
		Self: "10.0.0.1:7946#1b0f2e3d4c5b6a79", Leader: "10.0.0.1:7946#1b0f2e3d4c5b6a79",
		Blockers: "unreachable 10.0.0.2:7946#2f3d4c5b6a790b1e", Voters: []string{"10.0.0.1:7946#1b0f2e3d4c5b6a79"},
		Members: []management.Member{
			{Node: "10.0.0.1:7946#1b0f2e3d4c5b6a79", Status: "up", Age: 1, UpNumber: 1, Zone: "east", Roles: []string{"backend", "web"}, Version: "1.2.0", Voter: true, Seen: true},
			{Node: "10.0.0.2:7946#2f3d4c5b6a790b1e", Status: "down", DownedBy: "10.0.0.1:7946#1b0f2e3d4c5b6a79", DownedWhy: "keep-majority: it is lost", UnreachableFor: []string{"10.0.0.1:7946#1b0f2e3d4c5b6a79", "10.0.0.3:7946#3f3d4c5b6a790b1e", "10.0.0.4:7946#4f3d4c5b6a790b1e"}},
		},
	}
}

func TestMembersForPeopleAndPrograms(t *testing.T) {
	url := node(t, members(two()))
	status, stdout, stderr := remote("members", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	require.Equal(t, `asked        10.0.0.1:7946#1b0f2e3d4c5b6a79
standing     not held: the entities of this node are suspended
leader       10.0.0.1:7946#1b0f2e3d4c5b6a79
converged    no: unreachable 10.0.0.2:7946#2f3d4c5b6a790b1e
voters       1
members      2

age  status     node
  1  up         10.0.0.1:7946#1b0f2e3d4c5b6a79
                asked, leader, voter, zone east, roles backend web, version
                1.2.0
  -  down       10.0.0.2:7946#2f3d4c5b6a790b1e
                has not seen this state
                unreachable for 10.0.0.1:7946#1b0f2e3d4c5b6a79,
                10.0.0.3:7946#3f3d4c5b6a790b1e, 10.0.0.4:7946#4f3d4c5b6a790b1e
                declared down by 10.0.0.1:7946#1b0f2e3d4c5b6a79: keep-majority:
                it is lost
`, stdout)
	status, stdout, _ = remote("--json", "members", "-node", strings.TrimPrefix(url, "http://"))
	require.Equal(t, command.StatusOK, status)
	var got management.ClusterMembers
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, two(), got)

	_, stdout, _ = remote("members", "-node", node(t, members(management.ClusterMembers{Self: "a:1#1", Blockers: "this node is not a member"})))
	require.Contains(t, stdout, "leader       none\n")
	require.NotContains(t, stdout, "age")
}

func TestDecisionsForPeopleAndPrograms(t *testing.T) {
	list := management.DecisionList{Self: "10.0.0.1:7946#1", Omitted: 7, Decisions: []management.Decision{
		{
			At: time.Unix(1700000000, 0), Component: "membership", Topic: "downing", Subject: "10.0.0.2:7946#2", Verdict: "down",
			Reason: strings.Repeat("the side of 10.0.0.1:7946#1 has the majority, ", 4) + "and\nthis \x1b[31mis\x1b[0m no colour",
		},
		{At: time.Unix(1700000060, 0), Component: "sharding", Topic: "allocation", Subject: "account: 3 shards", Verdict: "placed"},
	}}
	asked := make(chan string, 9)
	url := node(t, management.Route{
		Path: "/v1/decisions", Query: []string{"component", "topic", "subject", "limit"},
		Answer: func(_ context.Context, r management.Request) (any, error) {
			asked <- strings.Join([]string{r.Query("component"), r.Query("topic"), r.Query("subject"), r.Query("limit")}, "|")
			return list, nil
		},
	})
	status, stdout, stderr := remote("decisions", "-node", url, "-component", "membership", "-topic", "downing", "-subject", "10.0.0.2 &#", "-limit", "5")
	require.Equal(t, command.StatusOK, status, stderr)
	require.Equal(t, "membership|downing|10.0.0.2 &#|5", <-asked)
	fits(t, stdout)
	require.Equal(t, `asked        10.0.0.1:7946#1
shown        2 decisions, 7 older ones not shown: see -limit

2023-11-14T22:13:20Z  membership downing
  10.0.0.2:7946#2: down
  because: the side of 10.0.0.1:7946#1 has the majority, the side of
  10.0.0.1:7946#1 has the majority, the side of 10.0.0.1:7946#1 has the
  majority, the side of 10.0.0.1:7946#1 has the majority, and this �[31mis�[0m
  no colour

2023-11-14T22:14:20Z  sharding allocation
  account: 3 shards: placed
`, stdout)
	status, stdout, _ = remote("decisions", "-json", "-node", url)
	require.Equal(t, command.StatusOK, status)
	require.Equal(t, "|||20", <-asked)
	var got management.DecisionList
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Len(t, got.Decisions, 2)
}

// one explains the shards of one kind. They have the same home, except for shard 5, which
// has none; shard 6 is explained as if its home were asked.
type one struct{}

func (one) Kinds(context.Context) ([]management.Kind, error) {
	return []management.Kind{{Name: "account", Shards: 100}}, nil
}

func (o one) Explain(ctx context.Context, kind, entity string) (management.Explanation, error) {
	e, err := o.ExplainShard(ctx, kind, 17)
	e.Entity = entity
	return e, err
}

func (one) ExplainShard(_ context.Context, kind string, shard int) (management.Explanation, error) {
	e := management.Explanation{
		Kind: kind, Shard: shard, Self: "10.0.0.1:7946#1", Home: "10.0.0.2:7946#2", State: "serving", Epoch: "1700000000/7",
		Since: time.Unix(1700000000, 0), Coordinator: "10.0.0.3:7946#3", Decision: "allocation by least-shard",
		Reason:  "it hosted the fewest shards of all regions of the highest version, 12 of 100, when the shard was asked for first",
		Pending: []string{"two messages for the shard wait here", "the coordinator wants to move it"},
		History: []management.Move{
			{At: time.Unix(1600000000, 0), To: "10.0.0.4:7946#4", Epoch: "1600000000/1", Reason: "first message"},
			{At: time.Unix(1700000000, 0), From: "10.0.0.4:7946#4", To: "10.0.0.2:7946#2", Epoch: "1700000000/7"},
			{At: time.Unix(1700000001, 0), From: "10.0.0.2:7946#2"},
		},
	}
	if shard == 5 {
		e = management.Explanation{Kind: kind, Shard: shard, Self: "10.0.0.1:7946#1", State: "no home", Complete: true, Coordinator: "10.0.0.1:7946#1"}
	}
	if shard == 6 {
		e.Self, e.History, e.Pending = e.Home, nil, nil
	}
	return e, nil
}

func TestWhyForPeopleAndPrograms(t *testing.T) {
	url := node(t, management.Explanations("10.0.0.1:7946#1", one{})...)
	status, stdout, stderr := remote("why", "acct-42", "-kind", "account", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	require.Equal(t, `kind         account
entity       acct-42
shard        17
home         10.0.0.2:7946#2
state        serving
since        2023-11-14T22:13:20Z
epoch        1700000000/7
decision     allocation by least-shard
because      it hosted the fewest shards of all regions of the highest version,
             12 of 100, when the shard was asked for first
waits for    two messages for the shard wait here
waits for    the coordinator wants to move it
coordinator  10.0.0.3:7946#3
asked        10.0.0.1:7946#1
             The node asked is not the coordinator, which may know more.

history
  2020-09-13T12:26:40Z  no home -> 10.0.0.4:7946#4
                        epoch 1600000000/1: first message
  2023-11-14T22:13:20Z  10.0.0.4:7946#4 -> 10.0.0.2:7946#2
                        epoch 1700000000/7
  2023-11-14T22:13:21Z  10.0.0.2:7946#2 -> no home
`, stdout)
	_, stdout, _ = remote("why", "-kind", "account", "-shard", "5", "-node", url)
	require.Equal(t, `kind         account
shard        5
home         none at present
state        no home
coordinator  10.0.0.1:7946#1
asked        10.0.0.1:7946#1
`, stdout)
	_, stdout, _ = remote("why", "-kind", "account", "-shard", "6", "-node", url)
	require.Contains(t, stdout, "home         10.0.0.2:7946#2 (the node asked)\n")
	for _, id := range []string{"a/b", "..", ".", "ü ?&#%", strings.Repeat("x", 500)} {
		status, stdout, stderr = remote("why", id, "-kind", "account", "-node", url)
		require.Equal(t, command.StatusOK, status, stderr)
		fits(t, stdout)
		status, stdout, _ = remote("--json", "why", id, "-kind", "account", "-node", url)
		require.Equal(t, command.StatusOK, status)
		var got management.Explanation
		require.NoError(t, json.Unmarshal([]byte(stdout), &got))
		require.Equal(t, id, got.Entity)
	}
}

// Whatever keeps a command from printing an answer is said in one line of its own. The
// status tells a node that gave no answer, 1, from a wrong command line, 2.
func TestWhatGoesWrongBetweenHereAndTheNode(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, nobody.Close())
	good := node(t, management.Explanations("10.0.0.1:7946#1", one{})...)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "members"):
			_, _ = io.WriteString(w, "<html>")
		case strings.HasSuffix(r.URL.Path, "decisions"):
			http.Redirect(w, r, good, http.StatusFound)
		default:
			<-r.Context().Done()
		}
	}))
	defer other.Close()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for name, test := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"no server":         {[]string{"members", "-node", nobody.Addr().String()}, 1, "no node answers at http://" + nobody.Addr().String() + ": dial tcp"},
		"another server":    {[]string{"members", "-node", other.URL}, 1, "does not answer as a node does (status 200"},
		"redirect":          {[]string{"decisions", "-node", other.URL}, 1, "does not answer as a node does (status 302, no error in JSON)"},
		"too slow":          {[]string{"why", "a", "-kind", "account", "-node", other.URL, "-timeout", "30ms"}, 1, "no answer from " + other.URL + " within 30ms"},
		"unknown kind":      {[]string{"why", "a", "-kind", "acount", "-node", good}, 1, `kind "acount" does not run on this node; there are account`},
		"unknown shard":     {[]string{"why", "-kind", "account", "-shard", "100", "-node", good}, 1, `kind "account" has no shard 100: they are 0 to 99`},
		"negative shard":    {[]string{"why", "-kind", "account", "-shard", "-1", "-node", good}, 1, "0 to 99"},
		"no such route":     {[]string{"members", "-node", good}, 1, "there is nothing at /v1/members"},
		"no entity":         {[]string{"why", "-kind", "account", "-node", good}, 2, "Give the id of an entity, or -shard"},
		"entity and shard":  {[]string{"why", "a", "-kind", "account", "-shard", "1", "-node", good}, 2, `both the entity "a" and -shard 1`},
		"no kind":           {[]string{"why", "a", "-node", good}, 2, "missing flags: --kind"},
		"empty kind":        {[]string{"why", "a", "-kind", "", "-node", good}, 2, "-kind is empty"},
		"another scheme":    {[]string{"members", "-node", "ftp://a"}, 2, `-node "ftp://a" is not the address of a node`},
		"URL with a path":   {[]string{"members", "-node", good + "/v1/members"}, 2, "http://127.0.0.1:8080"},
		"no timeout":        {[]string{"members", "-node", good, "-timeout", "0s"}, 2, "-timeout 0s"},
		"half of TLS":       {[]string{"members", "-node", good, "-key", "k.pem"}, 2, "go together"},
		"no certificate":    {[]string{"members", "-node", good, "-key", "k.pem", "-certificate", "c.pem", "-authorities", "a.pem"}, 2, "-certificate c.pem with -key k.pem: open c.pem"},
		"empty certificate": {[]string{"members", "-node", good, "-key", empty, "-certificate", empty, "-authorities", empty}, 2, "PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := remote(test.args...)
			require.Equal(t, test.status, status, stderr)
			require.Empty(t, stdout)
			require.True(t, strings.HasPrefix(stderr, "quorate: "), stderr)
			require.Contains(t, stderr, test.want)
			require.Equal(t, 1, strings.Count(stderr, "\n"), "one line")
		})
	}
}

// A node with TLS is asked with the certificate of the flags; without them the command
// fails.
func TestNodesWithTLSAreAsked(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"self":"`+strconv.Itoa(len(r.TLS.PeerCertificates))+`"}`)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	defer server.Close()
	save := func(name, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	certificate := save("cert.pem", "CERTIFICATE", server.Certificate().Raw)
	status, stdout, stderr := remote("members", "-node", server.URL,
		"-certificate", certificate, "-key", save("key.pem", "PRIVATE KEY", key), "-authorities", certificate)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Contains(t, stdout, "asked        1\n")
	status, _, stderr = remote("members", "-node", server.URL)
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "certificate")
}

func TestHelpOfCommandsThatAsk(t *testing.T) {
	for _, name := range []string{"members", "decisions", "why", "form"} {
		status, stdout, _ := remote(name, "-h")
		require.Equal(t, command.StatusOK, status)
		fits(t, stdout)
		require.Contains(t, stdout, "Examples:")
		require.Contains(t, stdout, "--node")
		require.Contains(t, stdout, "--timeout")
	}
}

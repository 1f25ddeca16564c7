// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/ddata/services/registry"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/tools/internal/command"
)

// The commands that ask a running node about services and topics, against a node that answers
// what the test says.

// services runs a command for services or topics.
func services(args ...string) (status int, stdout, stderr string) {
	return output(command.Program{Name: "quorate", Help: "A cluster toolkit.", Commands: []command.Command{
		{Name: "registry", Help: "Services", Args: &command.Registry{}},
		{Name: "topics", Help: "Topics", Args: &command.Topics{}},
		{Name: "version", Help: "Print the version", Args: &command.Version{}},
	}}, args...)
}

const (
	first  = "10.0.0.1:7946#1b0f2e3d4c5b6a79"
	second = "10.0.0.2:7946#2f3d4c5b6a790b1e"
)

// mail is a service with an entry that is found and one that is not.
func mail() registry.Explanation {
	return registry.Explanation{
		Name: "mail", Data: ddata.Explanation{Key: "registry/mail", Self: first, State: "live", Type: "lwwmap", Group: ddata.Group{Name: "all", Quorum: true, Generation: 1, Phase: "stable"}},
		Entries: []registry.ExplainedEntry{
			{Address: "10.0.0.1:25", Metadata: map[string]string{"tls": "yes", "about": strings.Repeat("long ", 20)}, Node: first, ID: 1, Version: 2},
			{Address: "10.0.0.2:25", Node: second, ID: 1, Version: 1, Hidden: "its node is downed"},
		},
		Malformed: 1, Subscribers: 3,
	}
}

// news is a topic with subscribers on two nodes, of which one drops messages.
func news() pubsub.Explanation {
	return pubsub.Explanation{
		Topic: "news", Data: ddata.Explanation{Key: "pubsub/news", Self: first, State: "live"},
		Nodes: []string{second}, Groups: map[string][]string{"clerks": {first, second}}, Absent: []string{"10.0.0.3:7946#3f3d4c5b6a790b1e"},
		Subscribers: []pubsub.ExplainedSubscriber{
			{Policy: "drop-oldest", Room: 64, Waiting: 64, Dropped: 7},
			{Group: "clerks", Policy: "block", Room: 1024},
		},
	}
}

// serving serves a node with services and topics.
func serving(t *testing.T) (url string) {
	t.Helper()
	none := &management.Error{Status: http.StatusBadRequest, Text: "invalid name"}
	return node(
		t,
		management.Route{Path: "/v1/registry", Query: []string{"prefix", "limit"}, Answer: func(_ context.Context, r management.Request) (any, error) {
			return cluster.ServiceNames{Self: first, Names: []string{r.Query("prefix") + "a", "with\x1b[31m colour"}, More: r.Query("limit") == "2"}, nil
		}},
		management.Route{Path: "/v1/registry/explain", Query: []string{"name"}, Answer: func(_ context.Context, r management.Request) (any, error) {
			switch r.Query("name") {
			case "mail":
				return mail(), nil
			case "nobody":
				return registry.Explanation{Name: "nobody", Data: ddata.Explanation{Self: first}}, nil
			default:
				return nil, none
			}
		}},
		management.Route{Path: "/v1/topics", Query: []string{"prefix", "limit"}, Answer: func(_ context.Context, r management.Request) (any, error) {
			return cluster.TopicNames{Self: first, Topics: []string{r.Query("prefix") + "news"}, More: r.Query("limit") == "1"}, nil
		}},
		management.Route{Path: "/v1/topics/explain", Query: []string{"topic"}, Answer: func(_ context.Context, r management.Request) (any, error) {
			if r.Query("topic") != "news" {
				return nil, none
			}
			return news(), nil
		}},
	)
}

// Names are printed as a terminal can take them.
func TestNamesForPeopleAndPrograms(t *testing.T) {
	url := serving(t)
	status, stdout, stderr := services("registry", "names", "user/", "-limit", "2", "-node", url)
	require.Equal(t, command.StatusOK, status)
	require.Equal(t, "user/a\nwith�[31m colour\n", stdout)
	require.Equal(t, "There are more names: see -limit.\n", stderr)
	status, stdout, stderr = services("topics", "names", "-limit", "1", "-node", url)
	require.Equal(t, command.StatusOK, status)
	require.Equal(t, "news\n", stdout)
	require.Equal(t, "There are more names: see -limit.\n", stderr)
	_, stdout, _ = services("--json", "registry", "names", "-node", url)
	var names cluster.ServiceNames
	require.NoError(t, json.Unmarshal([]byte(stdout), &names))
	require.Equal(t, first, names.Self)
	_, stdout, _ = services("--json", "topics", "names", "-node", url)
	var topics cluster.TopicNames
	require.NoError(t, json.Unmarshal([]byte(stdout), &topics))
	require.Equal(t, []string{"news"}, topics.Topics)
}

// What a program would find is printed by its address, and nothing of nodes that are gone.
func TestFindServiceForPeopleAndPrograms(t *testing.T) {
	url := serving(t)
	status, stdout, stderr := services("registry", "find", "mail", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Equal(t, "10.0.0.1:25\n", stdout)
	status, stdout, _ = services("--json", "registry", "find", "mail", "-node", url)
	require.Equal(t, command.StatusOK, status)
	var got registry.Explanation
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, mail().Entries[:1], got.Entries)
	status, stdout, stderr = services("registry", "find", "nobody", "-node", url)
	require.Equal(t, command.StatusFailed, status)
	require.Empty(t, stdout)
	require.Equal(t, `quorate: no service is found under "nobody" on `+first+"\n", stderr)
	status, _, stderr = services("registry", "find", "x", "-node", url)
	require.Equal(t, command.StatusFailed, status)
	require.Equal(t, "quorate: invalid name\n", stderr)
}

// All that is registered is printed, with the reason why some of it is not found.
func TestWhyServiceForPeopleAndPrograms(t *testing.T) {
	url := serving(t)
	status, stdout, stderr := services("registry", "why", "mail", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	require.True(t, strings.HasPrefix(stdout, `name         mail
asked        10.0.0.1:7946#1b0f2e3d4c5b6a79
subscribers  3
malformed    1 entry

address      10.0.0.1:25
node         10.0.0.1:7946#1b0f2e3d4c5b6a79
number       1, version 2
metadata     about: long long`), stdout)
	require.Contains(t, stdout, `
metadata     tls: yes

address      10.0.0.2:25
node         10.0.0.2:7946#2f3d4c5b6a790b1e
number       1, version 1
not found    its node is downed

key          registry/mail
state        live
`)
	_, stdout, _ = services("--json", "registry", "why", "mail", "-node", url)
	var got registry.Explanation
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, mail(), got)
}

// Where messages go is printed, and what becomes of them on the node itself.
func TestWhyTopicForPeopleAndPrograms(t *testing.T) {
	url := serving(t)
	status, stdout, stderr := services("topics", "why", "news", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	require.True(t, strings.HasPrefix(stdout, `topic        news
asked        10.0.0.1:7946#1b0f2e3d4c5b6a79
sent to      10.0.0.2:7946#2f3d4c5b6a790b1e
group        clerks: one of 10.0.0.1:7946#1b0f2e3d4c5b6a79,
             10.0.0.2:7946#2f3d4c5b6a790b1e
gets nothing 10.0.0.3:7946#3f3d4c5b6a790b1e
subscriber   drop-oldest, 64 of 64 wait, 7 dropped
subscriber   in the group clerks, block, 0 of 1024 wait

key          pubsub/news
`), stdout)
	_, stdout, _ = services("--json", "topics", "why", "news", "-node", url)
	var got pubsub.Explanation
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, news(), got)
}

func TestHelpOfCommandsForServicesAndTopics(t *testing.T) {
	for _, words := range []string{"registry names", "registry find", "registry why", "topics names", "topics why"} {
		status, stdout, _ := services(append(strings.Fields(words), "-h")...)
		require.Equal(t, command.StatusOK, status)
		fits(t, stdout)
		require.Contains(t, stdout, "Examples:")
	}
}

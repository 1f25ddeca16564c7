// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/tools/internal/command"
)

// The commands by which an operator changes who is a member, against a node that obeys, and says that it
// has at the second question.

// operator runs one of these commands.
func operator(args ...string) (status int, stdout, stderr string) {
	return output(command.Program{Name: "quorate", Help: "A cluster toolkit.", Commands: []command.Command{
		{Name: "down", Help: "Down", Args: &command.Down{}},
		{Name: "join", Help: "Join", Args: &command.Join{}},
		{Name: "leave", Help: "Leave", Args: &command.Leave{}},
		{Name: "reload", Help: "Reload", Args: &command.Reload{}},
		{Name: "shutdown-cluster", Help: "Stop all", Args: &command.ShutdownCluster{}},
	}}, args...)
}

// obedient is a node that does what it is told.
type obedient struct {
	asked   []string // What it was told.
	failed  error    // It refuses everything with this, unless it is nil.
	looked  int      // How often it was asked for members, or whether it is live.
	forever bool     // Whatever is waited for never comes.
	changed []string // What a reload takes over.
	then    string   // What its only member is at the second question.
}

const (
	firstNode  = "10.0.0.1:7946#1b0f2e3d4c5b6a79"
	secondNode = "10.0.0.2:7946#2f3d4c5b6a790b1e"
)

// over reports whether what is waited for is over at this question.
func (o *obedient) over() bool {
	o.looked++
	return o.looked > 1 && !o.forever
}

// routes are those of the node.
func (o *obedient) routes() []management.Route {
	operation := func(path, name string, query []string, answer func(r management.Request) any) management.Route {
		return management.Route{Path: path, Operation: name, Query: query, Authorized: true, Answer: func(_ context.Context, r management.Request) (any, error) {
			text := name
			for _, parameter := range slices.Concat([]string{r.Path("member"), r.Path("members"), r.Path("seeds")}, []string{r.Query("cluster"), r.Query("force")}) {
				text += "|" + parameter
			}
			o.asked = append(o.asked, text)
			return answer(r), o.failed
		}}
	}
	return []management.Route{
		operation("/v1/members/{member}/leave", "leave", []string{"cluster"}, func(r management.Request) any {
			if r.Path("member") == firstNode {
				return management.LeaveAnswer{Self: firstNode, Member: firstNode, Status: "leaving"}
			}
			return management.LeaveAnswer{Self: firstNode, Member: secondNode, Status: "leaving"}
		}),
		operation("/v1/members/{members}/down", "down", []string{"cluster", "force"}, func(management.Request) any {
			return management.Downed{Self: firstNode, Members: []string{firstNode, secondNode}, Costs: []string{"of 3 voters 1 would be left"}}
		}),
		operation("/v1/join/{seeds}", "join", []string{"cluster"}, func(management.Request) any {
			return management.Joining{Self: firstNode, Seeds: []string{"10.0.0.2:7946", "[::1]:7946"}}
		}),
		operation("/v1/reload", "reload", nil, func(management.Request) any {
			return cluster.Reloaded{Self: firstNode, Changed: append([]string{}, o.changed...)}
		}),
		operation("/v1/shutdown", "shutdown-cluster", []string{"cluster", "force"}, func(management.Request) any {
			return management.ClusterShutdown{Self: firstNode, Status: "preparing", Members: []string{firstNode, secondNode}, Costs: []string{"nothing is served"}}
		}),
		{Path: "/health/live", Probe: true, Answer: func(context.Context, management.Request) (any, error) {
			if o.over() {
				return nil, &management.Error{Status: 503, Text: "not live", Reasons: []string{"the node has left the cluster"}}
			}
			return management.HealthStatus{Status: "live"}, nil
		}},
		{Path: "/v1/members", Answer: func(context.Context, management.Request) (any, error) {
			all := management.ClusterMembers{Self: firstNode, Members: []management.Member{{Node: firstNode, Status: "joining"}, {Node: secondNode, Status: "leaving", Age: 2}}}
			if o.over() {
				all.Members = []management.Member{{Node: firstNode, Status: o.then, Age: 1}}
			}
			return all, nil
		}},
	}
}

func TestOperatorsChangeWhoIsAMember(t *testing.T) {
	t.Parallel()
	o := &obedient{then: "up"}
	url, token, _ := operable(t, o.routes()...)
	status, _, stderr := operator("leave", "-node", url)
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "only an operator may ask this")
	for _, test := range []struct {
		args  []string
		asked string
		want  string
	}{
		{[]string{"leave"}, "leave|" + firstNode + "||||", "asked        " + firstNode + "\nmember       " + firstNode + "\noutcome      gone\n"},
		{[]string{"leave", secondNode, "-cluster", "bank"}, "leave|" + secondNode + "|||bank|", "asked        " + firstNode + "\nmember       " + secondNode + "\noutcome      gone\n"},
		{[]string{"leave", "10.0.0.2:7946", "-wait", "0s"}, "leave|" + secondNode + "||||", "asked        " + firstNode + "\nmember       " + secondNode + "\noutcome      leaving\n"},
		{
			[]string{"down", "self", secondNode, "-force"},
			"down||" + firstNode + "," + secondNode + "|||true",
			"asked        " + firstNode + "\ndown         " + firstNode + "\ndown         " + secondNode + "\ncost         of 3 voters 1 would be left\n",
		},
		{
			[]string{"join", "10.0.0.2:7946", "[::1]:7946", "-cluster", "a&b c"},
			"join|||10.0.0.2:7946,[::1]:7946|a&b c|",
			"asked        " + firstNode + "\nseeds        10.0.0.2:7946, [::1]:7946\noutcome      up\n",
		},
		{[]string{"join", "10.0.0.2:7946", "-wait", "0s"}, "join|||10.0.0.2:7946||", "asked        " + firstNode + "\nseeds        10.0.0.2:7946, [::1]:7946\noutcome      asks to join\n"},
		{[]string{"reload"}, "reload|||||", "asked        " + firstNode + "\noutcome      nothing has changed\n"},
	} {
		o.looked = 0
		status, stdout, stderr := operator(append(test.args, "-node", url, "-token-file", token)...)
		require.Equal(t, command.StatusOK, status, stderr)
		fits(t, stdout)
		require.Equal(t, test.want, stdout)
		require.Equal(t, test.asked, o.asked[len(o.asked)-1])
	}
	o.changed = []string{"plugins.zones.path", "sharding.passivate-idle-entity-after"}
	_, stdout, _ := operator("reload", "-node", url, "-token-file", token)
	require.Contains(t, stdout, "changed      plugins.zones.path\nchanged      sharding.passivate-idle-entity-after\n")
	for _, args := range [][]string{{"leave"}, {"down", "self"}, {"join", "10.0.0.2:7946"}, {"reload"}} {
		o.looked = 0
		status, stdout, stderr := operator(slices.Concat([]string{"--json"}, args, []string{"-node", url, "-token-file", token})...)
		require.Equal(t, command.StatusOK, status, stderr)
		got := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(stdout), &got))
		require.Equal(t, firstNode, got["self"])
	}
}

// What is refused is said in the words of the node, and what takes too long is said too.
func TestWhatOperatorsCannotChange(t *testing.T) {
	t.Parallel()
	o := &obedient{forever: true}
	url, token, _ := operable(t, o.routes()...)
	for _, args := range [][]string{{"leave"}, {"leave", secondNode}, {"join", "10.0.0.2:7946"}} {
		status, stdout, stderr := operator(append(args, "-wait", "1ms", "-node", url, "-token-file", token)...)
		require.Equal(t, command.StatusFailed, status)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "within 1ms: see quorate members")
	}
	o.failed = &management.Error{Status: 409, Text: "nothing was done, since this costs more", Reasons: []string{"of 3 voters 1 would be left"}}
	for _, args := range [][]string{{"leave"}, {"down", secondNode}, {"join", "10.0.0.2:7946"}, {"reload"}} {
		status, stdout, stderr := operator(append(args, "-node", url, "-token-file", token)...)
		require.Equal(t, command.StatusFailed, status)
		require.Empty(t, stdout)
		require.Equal(t, "quorate: nothing was done, since this costs more: of 3 voters 1 would be left\n", stderr)
	}
	for _, args := range [][]string{{"down"}, {"join"}} {
		status, _, _ := operator(append(args, "-node", url, "-token-file", token)...)
		require.Equal(t, command.StatusUsage, status)
	}
	for _, name := range []string{"leave", "down", "join", "reload", "shutdown-cluster"} {
		status, stdout, _ := operator(name, "-h")
		require.Equal(t, command.StatusOK, status)
		fits(t, stdout)
		require.Contains(t, stdout, "Examples:")
	}
}

// A member is started again after a command has looked it up. The command names who was found, so that
// the node refuses it, and whoever lives at the address goes on.
func TestACommandNamesWhoWasLookedUp(t *testing.T) {
	const again = "10.0.0.2:7946#33"
	lives := secondNode
	var asked []string
	refuse := func(_ context.Context, r management.Request) (any, error) {
		id := r.Path("member") + r.Path("members")
		asked = append(asked, id)
		if id != lives {
			return nil, &management.Error{Status: 404, Text: id + " is not a member any more: it was started again, and is " + lives + " now"}
		}
		return management.Downed{Self: firstNode, Members: []string{id}}, nil
	}
	url, token, _ := operable(t,
		management.Route{Path: "/v1/members/{member}/leave", Operation: "leave", Authorized: true, Answer: refuse},
		management.Route{Path: "/v1/members/{members}/down", Operation: "down", Authorized: true, Answer: refuse},
		management.Route{Path: "/v1/members", Answer: func(context.Context, management.Request) (any, error) {
			defer func() { lives = again }() // Just after the look.
			return management.ClusterMembers{Self: firstNode, Members: []management.Member{{Node: firstNode, Status: "up"}, {Node: lives, Status: "up"}}}, nil
		}})
	for _, name := range []string{"leave", "down"} {
		lives, asked = secondNode, nil
		status, stdout, stderr := operator(name, "10.0.0.2:7946", "-node", url, "-token-file", token)
		require.Equal(t, command.StatusFailed, status)
		require.Empty(t, stdout)
		require.Equal(t, []string{secondNode}, asked)
		require.Contains(t, strings.ReplaceAll(stderr, "\n", " "), secondNode+" is not a member any more: it was started again, and is "+again+" now")
	}
	status, stdout, stderr := operator("down", again, "-node", url, "-token-file", token)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Equal(t, "asked        "+firstNode+"\ndown         "+again+"\n", stdout)
}

// Names that mean nobody, or more than one, are refused before anything is asked for.
func TestANameThatMeansNobodyIsNoCommand(t *testing.T) {
	var members management.ClusterMembers
	url, token, _ := operable(t, management.Route{Path: "/v1/members", Answer: func(context.Context, management.Request) (any, error) { return members, nil }},
		management.Route{Path: "/v1/members/{members}/down", Operation: "down", Authorized: true, Answer: func(_ context.Context, r management.Request) (any, error) {
			return management.Downed{Self: firstNode, Members: []string{r.Path("members")}}, nil
		}})
	down := func(name string) (int, string) {
		status, stdout, stderr := operator("down", name, "-node", url, "-token-file", token)
		return status, strings.Join(strings.Fields(stdout+stderr), " ")
	}
	members.Self = firstNode
	_, said := down("10.0.0.2:7946")
	require.Equal(t, "quorate: "+firstNode+" is a member of no cluster: ask a member", said)
	members.Waiting = &management.Waiting{Reason: "no majority"}
	_, said = down("10.0.0.2:7946")
	require.Contains(t, said, "it waits for one (no majority): ask a member")

	members = management.ClusterMembers{Self: firstNode, Members: []management.Member{
		{Node: firstNode, Status: "up"},
		{Node: secondNode, Status: "down"},
		{Node: "10.0.0.2:7946#33", Status: "joining"},
		{Node: "10.0.0.3:7946#4", Status: "up"},
		{Node: "10.0.0.3:7946#5", Status: "joining"},
		{Node: "10.0.0.4:7946#6", Status: "down"},
	}}
	for name, want := range map[string]string{
		"10.0.0.2:7946": "asked " + firstNode + " down 10.0.0.2:7946#33", // Who is down already is on its way out.
		"10.0.0.4:7946": "asked " + firstNode + " down 10.0.0.4:7946#6",
		"10.0.0.3:7946": "quorate: more than one member is at 10.0.0.3:7946: give the id of 10.0.0.3:7946#4 or 10.0.0.3:7946#5",
		"10.0.0.9:7946": "quorate: no member is at 10.0.0.9:7946, says " + firstNode + ": quorate members lists them, and quorate decisions tells who has gone",
	} {
		_, said := down(name)
		require.Equal(t, want, said)
	}
	status, said := down("everybody")
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, said, "names no member")
}

// All members prepare; when they are ready, the node that is asked leaves, unless none is to.
func TestAnOperatorStopsAll(t *testing.T) {
	t.Parallel()
	o := &obedient{then: "ready"}
	url, token, _ := operable(t, o.routes()...)
	for _, test := range []struct {
		args    []string
		asked   []string
		outcome string
	}{
		{[]string{"-force", "-cluster", "bank"}, []string{"shutdown-cluster||||bank|true", "leave|" + firstNode + "|||bank|"}, "all have left"},
		{[]string{"-force", "-prepare-only"}, []string{"shutdown-cluster|||||true"}, "ready"},
		{[]string{"-wait", "0s"}, []string{"shutdown-cluster|||||"}, "preparing"},
	} {
		o.looked, o.asked = 0, nil
		status, stdout, stderr := operator(append([]string{"shutdown-cluster", "-node", url, "-token-file", token}, test.args...)...)
		require.Equal(t, command.StatusOK, status, stderr)
		fits(t, stdout)
		require.Equal(t, "asked        "+firstNode+"\nends         "+firstNode+"\nends         "+secondNode+"\noutcome      "+test.outcome+"\n", stdout)
		require.Equal(t, test.asked, o.asked)
	}
	o.forever, o.asked = true, nil
	status, stdout, stderr := operator("shutdown-cluster", "-node", url, "-token-file", token, "-wait", "1ms")
	require.Equal(t, command.StatusFailed, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "not all members are ready within 1ms ("+firstNode+" is joining, "+secondNode+" is leaving): see quorate members")
	require.Equal(t, []string{"shutdown-cluster|||||"}, o.asked, "nobody leaves before all are ready")
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/management"
)

// The commands by which an operator changes who is a member: leave and join wait until that is so
// ([await]), down does not, and reload has a node read its files again.

// Leave is the command that has a member leave.
type Leave struct {
	Member string        `arg:"" optional:"" default:"self" help:"The address or the id of the member; the node that is asked by default."`
	Wait   time.Duration `default:"1m" help:"How long to wait until the member is gone; 0s: not at all (${default})."`

	clusterFlag
	RemoteFlags
}

// Down is the command that declares members failed.
type Down struct {
	Members []string `arg:"" help:"The addresses or the ids of members."`
	Force   bool     `help:"Do it although it costs more than those members."`

	clusterFlag
	RemoteFlags
}

// Join is the command that has a node join.
type Join struct {
	Seeds []string      `arg:"" help:"The addresses of nodes that are asked to let the node join."`
	Wait  time.Duration `default:"1m" help:"How long to wait until the node is up; 0s: not at all (${default})."`

	clusterFlag
	RemoteFlags
}

// Reload is the command that has a node read its files again.
type Reload struct {
	RemoteFlags
}

// clusterFlag is the flag of commands that are refused by the nodes of any other cluster.
type clusterFlag struct {
	Cluster string `placeholder:"NAME" help:"Refuse unless the node asked belongs to this cluster, by its name or its id."`
}

// awaitEvery is how often a node is asked whether what a command waits for is so.
const awaitEvery = 250 * time.Millisecond

// operatorsOnly says in help texts who may use a command.
const operatorsOnly = `
Only an operator may ask for it: over the Unix socket of the node, with a token, or
with a certificate; see management.operators. What was asked for, by whom and with
which outcome is among the decisions of the node.
`

// Help is the text after the one-line help.
func (*Leave) Help() string {
	return `Has a member leave in order: what it hosts moves to the others first, then it is
removed, and its process sees that its node has ended. Any member may be asked.
The command looks up the id of the member, and means this one: a process that is
started at its address meanwhile is left alone. It waits until the member is gone.
` + operatorsOnly + `The exit status is 1 when the node refuses or does not answer, or the
member is not gone when the time to wait is over: it goes on to leave then, and
the command may be repeated.

Examples:
  quorate leave -node unix:///run/bank/operators
  quorate leave 10.0.0.7:7946 -cluster bank -token-file ~/.quorate-token
  quorate --json leave -wait 0s -token-file ~/.quorate-token | jq .status`
}

// Help is the text after the one-line help.
func (*Down) Help() string {
	return `Declares members failed, which have stopped or are cut off for good. One that still
runs ends as soon as it hears of it, hands nothing over, and what it hosts starts
elsewhere after its fence: have a member that works leave instead. An address means
who is the member there when the command begins: it looks up the id once, prints it,
and no other process is met that takes the address. Give the id itself, as quorate
members prints it, where another process may have taken the address already.

Down of the node that is asked, or of so many that those who are left have no
majority of the voters, needs -force. Without it the node says what it costs, and
does nothing.
` + operatorsOnly + `The exit status is 1 when the node refuses or does not answer.

Examples:
  quorate down 10.0.0.7:7946 -node unix:///run/bank/operators
  quorate down '10.0.0.7:7946#1b0f2e3d4c5b6a79' -token-file ~/token
  quorate --json down 10.0.0.7:7946 -token-file token | jq .members`
}

// Help is the text after the one-line help.
func (*Join) Help() string {
	return `Has a node that is in no cluster join that of the given nodes. Most nodes need none of
this: they have membership.seed-nodes or membership.discovery. The command waits
until the node is up.
` + operatorsOnly + `The exit status is 1 when the node refuses, as one does that is a member
or looks contact points up, or is not up when the time to wait is over: it goes on
to ask then.

Examples:
  quorate join 10.0.0.7:7946 10.0.0.8:7946 -node unix:///run/bank/operators
  quorate join 10.0.0.7:7946 -cluster bank -token-file ~/.quorate-token
  quorate --json join 10.0.0.7:7946 -token-file ~/.quorate-token | jq .seeds`
}

// Help is the text after the one-line help.
func (*Reload) Help() string {
	return `Has the node read its files again and take over what has changed: all of it, or, if
one setting cannot change while the node runs, nothing. The keys that were taken
over are printed. quorate config reference says which settings may change.
` + operatorsOnly + `The exit status is 1 when the node refuses or does not answer.

Examples:
  quorate reload -node unix:///run/bank/operators
  quorate reload -token-file ~/.quorate-token
  quorate --json reload -token-file ~/.quorate-token | jq -r '.changed[]'`
}

// path adds to a path which cluster is meant, and other parameters.
func (m clusterFlag) path(path string, query url.Values) string {
	if m.Cluster != "" {
		query.Set("cluster", m.Cluster)
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// Run has the member leave, and waits until it is gone.
func (c *Leave) Run(s *Session) error {
	ids, err := c.ids(c.Member)
	if err != nil {
		return err
	}
	var got management.LeaveAnswer
	raw, err := c.operate(c.path("/v1/members/"+segment(ids[0])+"/leave", url.Values{}), management.LeaveOperation, &got)
	if err != nil {
		return err
	}
	outcome := got.Status
	if c.Wait > 0 {
		if err := await(c.Wait, func() (bool, error) { return c.gone(got) }); err != nil {
			return fmt.Errorf("%s leaves, and is not gone within %v: %w; repeat the command to go on waiting", got.Member, c.Wait, err)
		}
		outcome = "gone"
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	field(s.Stdout, "asked", got.Self)
	field(s.Stdout, "member", got.Member)
	field(s.Stdout, "outcome", outcome)
	return nil
}

// gone reports whether a member has left. A node that was asked to leave itself is gone when it says
// that it has ended, or does not answer any more.
func (c *Leave) gone(of management.LeaveAnswer) (bool, error) {
	if of.Member == of.Self {
		_, err := c.get("/health/live", nil, new(management.HealthStatus))
		refused := new(refusedError)
		if errors.As(err, &refused) && refused.status != http.StatusServiceUnavailable {
			return false, err
		}
		return err != nil, nil
	}
	var got management.ClusterMembers
	if _, err := c.get("/v1/members", nil, &got); err != nil {
		return false, err
	}
	return !slices.ContainsFunc(got.Members, func(m management.Member) bool { return m.Node == of.Member }), nil
}

// errWaits says that nothing went wrong while a command waited.
var errWaits = errors.New("see quorate members")

// await asks until something is so, the last time when the time is over. The error is that of the
// last question.
func await(within time.Duration, so func() (bool, error)) error {
	every := time.NewTicker(awaitEvery)
	defer every.Stop()
	for end := time.Now().Add(within); ; {
		is, err := so()
		switch {
		case is:
			return nil
		case time.Now().After(end) && err == nil:
			return errWaits
		case time.Now().After(end):
			return err
		}
		<-every.C
	}
}

// Run has the members declared failed.
func (c *Down) Run(s *Session) error {
	names, err := c.ids(c.Members...)
	if err != nil {
		return err
	}
	for i, id := range names {
		names[i] = segment(id)
	}
	query := url.Values{}
	if c.Force {
		query.Set("force", "true")
	}
	var got management.Downed
	raw, err := c.operate(c.path("/v1/members/"+strings.Join(names, ",")+"/down", query), management.DownOperation, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	field(s.Stdout, "asked", got.Self)
	for _, m := range got.Members {
		field(s.Stdout, "down", m)
	}
	for _, cost := range got.Costs {
		field(s.Stdout, "cost", cost)
	}
	return nil
}

// Run has the node join, and waits until it is up.
func (c *Join) Run(s *Session) error {
	var got management.Joining
	names := make([]string, len(c.Seeds))
	for i, seed := range c.Seeds {
		names[i] = segment(seed)
	}
	raw, err := c.operate(c.path("/v1/join/"+strings.Join(names, ","), url.Values{}), management.JoinOperation, &got)
	if err != nil {
		return err
	}
	status := "asks to join"
	if c.Wait > 0 {
		if err := await(c.Wait, func() (bool, error) { return c.up(got.Self) }); err != nil {
			return fmt.Errorf("%s asks to join, and is not up within %v: %w", got.Self, c.Wait, err)
		}
		status = "up"
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	field(s.Stdout, "asked", got.Self)
	field(s.Stdout, "seeds", strings.Join(got.Seeds, ", "))
	field(s.Stdout, "outcome", status)
	return nil
}

// up reports whether a node is up, as it says itself.
func (c *Join) up(self string) (bool, error) {
	var got management.ClusterMembers
	if _, err := c.get("/v1/members", nil, &got); err != nil {
		return false, err
	}
	return slices.ContainsFunc(got.Members, func(m management.Member) bool { return m.Node == self && m.Age > 0 }), nil
}

// Run has the node read its files again.
func (c *Reload) Run(s *Session) error {
	c.Timeout = max(c.Timeout, operationWait)
	var got cluster.Reloaded
	raw, err := c.operate("/v1/reload", cluster.ReloadOperation, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	field(s.Stdout, "asked", got.Self)
	if len(got.Changed) == 0 {
		field(s.Stdout, "outcome", "nothing has changed")
	}
	for _, key := range got.Changed {
		field(s.Stdout, "changed", key)
	}
	return nil
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/management"
)

// ShutdownCluster is the command that stops a whole cluster.
type ShutdownCluster struct {
	Force       bool          `help:"Do it: it cannot be taken back."`
	PrepareOnly bool          `help:"Wait until all members are ready, and have none leave."`
	Wait        time.Duration `default:"2m" help:"How long to wait for each of the two steps; 0s: do not wait, and only prepare (${default})."`

	clusterFlag
	RemoteFlags
}

// Help is the text after the one-line help.
func (*ShutdownCluster) Help() string {
	return `Stops a whole cluster in order, so that no node takes over what is about to stop as
well, and a majority of the voters, in any order, can start it again with its data.

First all members prepare: nobody is let in, what has not come up leaves, and nothing
moves between nodes. When all are ready, the node that is asked leaves, and all others
with it. With -prepare-only none leaves yet: the first member that does, such as by the
signal that ends its process, takes all others along.

Where something starts ended processes again, prepare only, then tell it to stop them:
kubectl scale statefulset bank --replicas 0.
` + operatorsOnly + `The exit status is 1 when the node refuses or does not answer, or a step is not
done in time: the members go on with it then, and the command may be repeated.

Examples:
  quorate shutdown-cluster -force -node unix:///run/bank/operators
  quorate shutdown-cluster -prepare-only -force -token-file ~/.quorate-token
  quorate --json shutdown-cluster -force -token-file token | jq .members`
}

// Run has all members prepare, then leave.
func (c *ShutdownCluster) Run(s *Session) error {
	query := url.Values{}
	if c.Force {
		query.Set("force", "true")
	}
	var got management.ClusterShutdown
	raw, err := c.operate(c.path("/v1/shutdown", query), management.ShutdownOperation, &got)
	if err != nil {
		return err
	}
	outcome := got.Status
	if c.Wait > 0 {
		if outcome, err = c.finish(s, got); err != nil {
			return err
		}
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	field(s.Stdout, "asked", got.Self)
	for _, m := range got.Members {
		field(s.Stdout, "ends", m)
	}
	field(s.Stdout, "outcome", outcome)
	return nil
}

// finish waits until all members are ready, has the node that was asked leave, and waits until it is gone.
func (c *ShutdownCluster) finish(s *Session, of management.ClusterShutdown) (outcome string, err error) {
	fmt.Fprintf(s.Stderr, "%d members prepare\n", len(of.Members))
	var late []string
	if err := await(c.Wait, func() (is bool, err error) {
		late, err = c.unready()
		return err == nil && len(late) == 0, err
	}); err != nil {
		return "", fmt.Errorf("not all members are ready within %v (%s): %w; quorate why cluster tells more, and the command may be repeated",
			c.Wait, strings.Join(late, ", "), err)
	}
	if c.PrepareOnly {
		return gossip.Ready.String(), nil
	}
	fmt.Fprintln(s.Stderr, "all are ready, and leave")
	leave := Leave{Member: of.Self, clusterFlag: c.clusterFlag, RemoteFlags: c.RemoteFlags}
	var left management.LeaveAnswer
	if _, err := c.operate(c.path("/v1/members/"+segment(of.Self)+"/leave", url.Values{}), management.LeaveOperation, &left); err != nil {
		return "", err
	}
	if err := await(c.Wait, func() (bool, error) { return leave.gone(left) }); err != nil {
		return "", fmt.Errorf("all members leave, and %s is not gone within %v: %w", left.Member, c.Wait, err)
	}
	return "all have left", nil
}

// unready returns the members that are not ready, with what they are.
func (c *ShutdownCluster) unready() ([]string, error) {
	var got management.ClusterMembers
	if _, err := c.get("/v1/members", nil, &got); err != nil {
		return nil, err
	}
	ready := func(m management.Member) bool { return m.Status == gossip.Ready.String() }
	var late []string
	for _, m := range slices.DeleteFunc(got.Members, ready) {
		late = append(late, m.Node+" is "+m.Status)
	}
	return late, nil
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// The commands about what all nodes host, and about how many shards of a kind are in use: shards and entities
// with -all, and rescale.

// Rescale is the command that changes how many shards of a kind are in use.
type Rescale struct {
	Kind  string        `arg:"" help:"The kind, such as the name of a daemon."`
	Count *int          `arg:"" optional:"" help:"The new number; without it the present one is printed."`
	Wait  time.Duration `default:"30s" help:"How long to wait for the change, 1s to 1m (${default})."`

	RemoteFlags
}

// Help is the text after the one-line help.
func (*Rescale) Help() string {
	return `Changes how many shards of a kind are in use: the instances of a daemon, and of every
other kind that was started with such a number. All of them stop, the new number is
told to all nodes, then as many start. Any node that runs the kind may be asked.
Only an operator may change it: over the Unix socket of the node, with a token, or
with a certificate; see management.operators. The exit status is 1 when the change is
refused, was called off because something did not stop in time, or is still under
way when the time to wait is over; it goes on then.

Examples:
  quorate rescale projections
  quorate rescale projections 16 -token-file ~/.quorate-token
  quorate --json rescale projections 16 -token-file token | jq .revision`
}

// seconds returns a time to wait as the nodes take it.
func seconds(d time.Duration) string {
	return strconv.Itoa(int(min(max(d, time.Second), time.Minute).Round(time.Second) / time.Second))
}

// waitMargin is how much longer than the node this program waits.
const waitMargin = 5 * time.Second

// Run asks the node, and prints the answer.
func (c *Rescale) Run(s *Session) error {
	c.Timeout = max(c.Timeout, c.Wait+waitMargin)
	var got cluster.KindScale
	path := "/v1/kinds/" + url.PathEscape(c.Kind)
	ask := func() ([]byte, error) {
		if c.Count == nil {
			return c.get(path+"/scale", nil, &got)
		}
		query := url.Values{"count": {strconv.Itoa(*c.Count)}, "wait": {seconds(c.Wait)}}
		return c.operate(path+"/rescale?"+query.Encode(), cluster.RescaleOperation, &got)
	}
	raw, err := ask()
	if err != nil {
		return err
	}
	if s.JSON {
		err = s.PrintJSON(raw)
	} else {
		field(s.Stdout, "asked", got.Self)
		field(s.Stdout, "in use", fmt.Sprintf("%s of %s, revision %d", plural(got.Count, "shard"), got.Kind, got.Revision))
		if got.Next > 0 {
			field(s.Stdout, "changes", fmt.Sprintf("to %d, when all have stopped", got.Next))
		}
	}
	if err == nil && c.Count != nil && (!got.Complete || got.Count != *c.Count) {
		return fmt.Errorf("the change to %d has not come to its end yet: repeat the command to go on waiting", *c.Count)
	}
	return err
}

// all asks for the shards of all nodes, and prints them.
func (c *Shards) all(s *Session) error {
	c.Timeout = max(c.Timeout, c.Wait+waitMargin)
	var got sharding.ShardCensus
	raw, err := c.get("/v1/kinds/"+url.PathEscape(c.Kind)+"/everywhere/shards", url.Values{"wait": {seconds(c.Wait)}}, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		if err := s.PrintJSON(raw); err != nil {
			return err
		}
		return unanswered(got.Missing)
	}
	field(s.Stdout, "asked", got.Self)
	field(s.Stdout, "hosted", fmt.Sprintf("%d of %s, with %d entities", got.Hosted, plural(got.Shards, "shard"), got.Entities))
	for _, n := range got.Nodes {
		fmt.Fprintln(s.Stdout)
		field(s.Stdout, "node", n.Node)
		field(s.Stdout, "hosts", fmt.Sprintf("%s, with %d entities%s", plural(len(n.Shards), "shard"), n.Entities, conditionOf(n)))
		for _, x := range n.Shards {
			if x.Waits != "" {
				field(s.Stdout, "waits", fmt.Sprintf("shard %d: %s", x.Shard, x.Waits))
			}
		}
	}
	return printMissing(s, got.Missing)
}

// conditionOf says what is particular about a node.
func conditionOf(n sharding.NodeCensus) string {
	switch {
	case n.Proxy:
		return "; it only sends"
	case !n.Standing:
		return "; it has no standing"
	case n.Drained:
		return "; it is drained"
	default:
		return ""
	}
}

// all asks for the entities of all nodes, and prints a page of them.
func (c *Entities) all(s *Session) error {
	c.Timeout = max(c.Timeout, c.Wait+waitMargin)
	var got sharding.EntityPage
	query := url.Values{"limit": {strconv.Itoa(min(c.Limit, 1000))}, "wait": {seconds(c.Wait)}}
	if c.After != "" {
		query.Set("after", c.After)
	}
	raw, err := c.get("/v1/kinds/"+url.PathEscape(c.Kind)+"/everywhere/entities", query, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		if err := s.PrintJSON(raw); err != nil {
			return err
		}
		return unanswered(got.Missing)
	}
	field(s.Stdout, "asked", got.Self)
	fmt.Fprintln(s.Stdout)
	lead := fmt.Sprintf("%6s  %-8s  %7s  ", "shard", "state", "waiting")
	fmt.Fprintln(s.Stdout, lead+"entity, and its node")
	for _, e := range got.Entities {
		state := e.State
		if e.Stuck {
			state = "stuck"
		}
		fmt.Fprintf(s.Stdout, "%6d  %-8s  %7d  ", e.Shard, state, e.Waiting)
		paragraph(s.Stdout, len(lead), e.ID+", at "+e.Node)
	}
	if got.Next != "" {
		field(s.Stdout, "more", "-after "+strconv.Quote(got.Next))
	}
	return printMissing(s, got.Missing)
}

// printMissing prints who did not answer, which is an error.
func printMissing(s *Session, missing []sharding.Unanswered) error {
	for _, m := range missing {
		fmt.Fprintln(s.Stdout)
		field(s.Stdout, "missing", m.Node)
		field(s.Stdout, "reason", m.Reason)
	}
	return unanswered(missing)
}

// unanswered is the error of a list that is not complete.
func unanswered(missing []sharding.Unanswered) error {
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%s did not answer: what they host is not in the list", plural(len(missing), "node"))
}

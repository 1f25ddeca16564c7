// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/quorate/quorate/management"
)

// Decisions is the command that asks a node for its last decisions.
type Decisions struct {
	Component string `help:"Only those of this component: membership, sharding."`
	Topic     string `help:"Only those on this topic: join, leader, downing, allocation, handoff, ..."`
	Subject   string `help:"Only those whose subject contains this, as the address of a node."`
	Limit     int    `default:"20" help:"How many, the last ones; 1 to 10000 (${default})."`

	RemoteFlags
}

// Help is the text after the one-line help.
func (*Decisions) Help() string {
	return `Prints the last decisions that one node took itself, oldest first, each with its
reason. Other nodes took others: ask the leader why a member was removed, and the
coordinator of a kind why its shards moved. The exit status is 1 when the node
does not answer.

Examples:
  quorate decisions
  quorate decisions -topic downing -node http://10.0.0.7:8080
  quorate decisions -subject 10.0.0.9:7946 -limit 5
  quorate --json decisions -component sharding`
}

// Run asks the node, and prints the answer.
func (c *Decisions) Run(s *Session) error {
	query := url.Values{"limit": {strconv.Itoa(c.Limit)}}
	for name, value := range map[string]string{"component": c.Component, "topic": c.Topic, "subject": c.Subject} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var got management.DecisionList
	raw, err := c.get("/v1/decisions", query, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	field(s.Stdout, "asked", got.Self)
	shown := plural(len(got.Decisions), "decision")
	if got.Omitted > 0 {
		shown += fmt.Sprintf(", %d older ones not shown: see -limit", got.Omitted)
	}
	field(s.Stdout, "shown", shown)
	for _, d := range got.Decisions {
		fmt.Fprintf(s.Stdout, "\n%s  ", moment(d.At))
		paragraph(s.Stdout, 2, d.Component+" "+d.Topic)
		fmt.Fprint(s.Stdout, "  ")
		paragraph(s.Stdout, 2, d.Subject+": "+d.Verdict)
		if d.Reason != "" {
			fmt.Fprint(s.Stdout, "  ")
			paragraph(s.Stdout, 2, "because: "+d.Reason)
		}
	}
	return nil
}

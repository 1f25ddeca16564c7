// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/management"
)

// Members is the command that asks a node for the members of its cluster.
type Members struct {
	Remote
}

// Help is the text after the one-line help.
func (*Members) Help() string {
	return `Prints the members as one node sees them, the oldest first: their status, who
cannot reach them, who leads, who votes, and what keeps the cluster from agreeing.
The node needs a management.address in its configuration. The exit status is 1
when it does not answer.

Examples:
  quorate members
  quorate members -node http://10.0.0.7:8080
  quorate members -node https://10.0.0.7:8080 -certificate me.pem \
      -key me-key.pem -authorities ca.pem
  quorate --json members | jq '.members[] | select(.unreachableFor)'`
}

// Run asks, and prints.
func (c *Members) Run(s *Session) error {
	var got management.ClusterMembers
	raw, err := c.get("/v1/members", nil, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	c.print(s, got)
	return nil
}

// memberIndent is where the second line of a member begins: under its node.
const memberIndent = 16

// print writes the members for people.
func (c *Members) print(s *Session, got management.ClusterMembers) {
	field(s.Stdout, "asked", got.Self)
	standing := "held"
	if !got.Standing {
		standing = "not held: the entities of this node are suspended"
	}
	field(s.Stdout, "standing", standing)
	leader := got.Leader
	if leader == "" {
		leader = "none"
	}
	field(s.Stdout, "leader", leader)
	converged := "yes"
	if !got.Converged {
		converged = strings.TrimSuffix("no: "+got.Blockers, ": ")
	}
	field(s.Stdout, "converged", converged)
	field(s.Stdout, "voters", fmt.Sprint(len(got.Voters)))
	field(s.Stdout, "members", fmt.Sprint(len(got.Members)))
	if len(got.Members) == 0 {
		return
	}
	fmt.Fprintf(s.Stdout, "\n%3s  %-9s  %s\n", "age", "status", "node")
	for _, m := range got.Members {
		c.printMember(s, got, m)
	}
}

// printMember writes one member.
func (c *Members) printMember(s *Session, got management.ClusterMembers, m management.Member) {
	age, colour := "-", 31
	if m.Age > 0 {
		age = fmt.Sprint(m.Age)
	}
	if m.Status == "up" && len(m.UnreachableFor) == 0 {
		colour = 32
	}
	fmt.Fprintf(s.Stdout, "%3s  %s  ", age, s.Paint(colour, fmt.Sprintf("%-9s", printable(m.Status))))
	paragraph(s.Stdout, memberIndent, m.Node)
	var notes []string
	note := func(ok bool, text string) {
		if ok {
			notes = append(notes, text)
		}
	}
	note(m.Node == got.Self, "asked")
	note(m.Node == got.Leader, "leader")
	note(m.Voter, "voter")
	note(!m.Seen, "has not seen this state")
	note(m.Zone != "", "zone "+m.Zone)
	note(len(m.Roles) > 0, "roles "+strings.Join(m.Roles, " "))
	note(m.Version != "", "version "+m.Version)
	if len(notes) > 0 {
		fmt.Fprintf(s.Stdout, "%*s", memberIndent, "")
		paragraph(s.Stdout, memberIndent, strings.Join(notes, ", "))
	}
	if len(m.UnreachableFor) > 0 {
		fmt.Fprintf(s.Stdout, "%*s", memberIndent, "")
		paragraph(s.Stdout, memberIndent, "unreachable for "+strings.Join(m.UnreachableFor, ", "))
	}
}

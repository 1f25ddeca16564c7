// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/quorate/quorate/management"
)

// The command asks a node ([Members.Run]) and prints first what the node says of the cluster and
// of what it waits for, then the members, the oldest first.

// Members is the command that asks a node for the members of its cluster.
type Members struct {
	RemoteFlags
}

// Help is the text after the one-line help.
func (*Members) Help() string {
	return `Prints the members as one node sees them, the oldest first: their status, who
cannot reach them, who leads, who votes, and what keeps the cluster from agreeing.
While the node waits for a cluster: each voter that it waits for, what that one
answered, since when, and what can be done.
The node needs a management.address in its configuration. The exit status is 1
when it does not answer.

Examples:
  quorate members
  quorate members -node http://10.0.0.7:8080
  quorate members -node https://10.0.0.7:8080 -certificate me.pem \
      -key me-key.pem -authorities ca.pem
  quorate --json members | jq '.members[] | select(.unreachableFor)'`
}

// Run asks the node, and prints the answer.
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
	if got.Waiting != nil {
		fmt.Fprintln(s.Stdout)
		field(s.Stdout, "to found", "quorate form -node "+c.Node)
	}
	return nil
}

// memberIndent is the column of a member's second line: under the member's node.
const memberIndent = 16

// print writes the members for people.
func (c *Members) print(s *Session, got management.ClusterMembers) {
	field(s.Stdout, "asked", got.Self)
	field(s.Stdout, "cluster", got.Cluster)
	if got.Yielded != "" {
		field(s.Stdout, "yielded", "to cluster "+got.Yielded+
			" of the same name, which goes on: this node hosts nothing, ends shortly, and joins that when it is started again")
	}
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
	if got.RecordLost {
		field(s.Stdout, "record", "lost: after a restart this node has no vote in who starts the cluster again")
	}
	if got.Waiting != nil {
		printWaiting(s.Stdout, got.Waiting)
	}
	if len(got.Members) == 0 {
		return
	}
	fmt.Fprintf(s.Stdout, "\n%3s  %-9s  %s\n", "age", "status", "node")
	for _, m := range got.Members {
		c.printMember(s, got, m)
	}
}

// printWaiting writes which voters a node waits for.
func printWaiting(w io.Writer, waiting *management.Waiting) {
	field(w, "waits", waiting.Reason)
	field(w, "cure", waiting.Cure)
	of := "the listed seed nodes"
	switch {
	case waiting.Remembered:
		of = "the voters of the last cluster that somebody remembers"
	case waiting.Found:
		of = "the contact points that were found"
	}
	fmt.Fprintf(w, "\n%s\n", of)
	for _, v := range waiting.Voters {
		fmt.Fprint(w, "  ")
		paragraph(w, 2, v.Node)
		fmt.Fprint(w, "      ")
		paragraph(w, 6, v.Answer+", since "+moment(v.Since))
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
	if m.DownedBy != "" {
		fmt.Fprintf(s.Stdout, "%*s", memberIndent, "")
		paragraph(s.Stdout, memberIndent, "declared down by "+m.DownedBy+": "+m.DownedWhy)
	}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/quorate/quorate/management"
)

// Form is the command that lets a node found a cluster although voters are missing.
type Form struct {
	RemoteFlags

	Yes bool `short:"y" help:"Do not ask whether it is meant."`

	stdin    io.Reader
	terminal bool
}

// NewForm returns the command. It asks for a confirmation on stdin if that is a terminal;
// otherwise it requires -yes.
func NewForm(stdin io.Reader, terminal bool) *Form { return &Form{stdin: stdin, terminal: terminal} }

// Help is the text after the one-line help.
func (*Form) Help() string {
	return `Lets a node that waits for a cluster found one with itself as its only voter, whatever
other voters remember. It is for the case that a majority of them is gone for good;
if they can be started with the data that they had, start them instead. What only
they know is given up. Look with quorate members first, choose the node that
knows most, ask one node only, and delete the data-dir of nodes that are started
again later.

The node refuses while a member of a cluster that goes on answers, when it does
not wait, and where management.allow-form is false. The exit status is 1 when it
refuses or does not answer, and 2 without a confirmation.

Examples:
  quorate members
  quorate form
  quorate form -yes -node https://10.0.0.7:8080 -certificate me.pem \
      -key me-key.pem -authorities ca.pem
  quorate --json form -yes | jq -r .cluster`
}

// Run asks the node which voters it waits for, asks the user for confirmation, and has
// the node found a cluster.
func (c *Form) Run(s *Session) error {
	var members management.ClusterMembers
	if _, err := c.get("/v1/members", nil, &members); err != nil {
		return err
	}
	if members.Waiting == nil {
		return fmt.Errorf("%s does not wait for a cluster, so that nothing is to be founded: see quorate members", printable(members.Self))
	}
	if err := c.confirm(s, members); err != nil {
		return err
	}
	var got management.Formed
	raw, err := c.operate("/v1/form", management.FormOperation, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	field(s.Stdout, "founded", "cluster "+got.Cluster)
	field(s.Stdout, "by", got.Self)
	for _, v := range got.GivenUp {
		field(s.Stdout, "given up", v)
	}
	field(s.Stdout, "next", "start the other nodes; delete the data-dir of those that were given up before they are started again")
	return nil
}

// confirm names what is given up, and asks the user for confirmation.
func (c *Form) confirm(s *Session, members management.ClusterMembers) error {
	if c.Yes {
		return nil
	}
	if !c.terminal {
		return RejectedError{Text: "standard input is no terminal: say -yes if a majority of the voters is gone for good"}
	}
	paragraph(s.Stderr, 0, fmt.Sprintf("%s would found a new cluster, as its only voter.", members.Self))
	printWaiting(s.Stderr, members.Waiting)
	fmt.Fprintln(s.Stderr)
	paragraph(s.Stderr, 0, "What those who are missing know, and this node does not, is given up. If one of them still runs, or is "+
		"started with its data, there are two clusters until they meet, and one of them ends.")
	fmt.Fprint(s.Stderr, "Are they gone for good? Type yes to go on: ")
	return meant(s, c.stdin, "a majority of the voters is gone for good")
}

// meant reads the answer to a question, whether it is yes. The reason is what -yes would say.
func meant(s *Session, stdin io.Reader, reason string) error {
	answer, err := bufio.NewReader(io.LimitReader(stdin, 64)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch strings.TrimSpace(answer) {
	case "yes":
		return nil
	case "":
		fmt.Fprintln(s.Stderr)
		return RejectedError{Text: "nothing was done, for nobody has answered: say -yes if " + reason}
	default:
		return RejectedError{Text: "nothing was done"}
	}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/quorate/quorate/management"
)

// The command asks about an entity or a shard ([WhyCommand.Run]) and prints its explanation with its history, or
// about the cluster ([WhyCommand.cluster]) and prints the findings of the node.

// WhyCommand is the command that asks a node where an entity or a shard lives, and why
// there.
type WhyCommand struct {
	Entity string  `arg:"" optional:"" help:"The id of an entity; or cluster, without a kind."`
	Kind   *string `help:"The kind of the entity, as the program names it."`
	Shard  *int    `help:"Ask for this shard in place of an entity."`

	RemoteFlags
}

// Help is the text after the one-line help.
func (*WhyCommand) Help() string {
	return `Prints where an entity lives: its shard, the node that hosts it, since when, by
which decision and why, what is waited for, and where it was before. A node knows
the homes; the coordinator of the kind, which the answer names, knows the reasons.
The exit status is 1 when the node does not answer, or does not know the kind.

quorate why cluster says instead why the cluster is as the node sees it: why not all
agree, who leads and why, why a member cannot be reached, or waits to be up.

Examples:
  quorate why acct-42 -kind account
  quorate why acct-42 -kind account -node http://10.0.0.7:8080
  quorate why -kind account -shard 17
  quorate why cluster
  quorate --json why acct-42 -kind account
  quorate why -kind account -- -an-id-with-a-hyphen`
}

// Run asks the node, and prints the answer.
func (c *WhyCommand) Run(s *Session) error {
	switch {
	case c.Kind == nil && c.Entity == "cluster" && c.Shard == nil:
		return c.cluster(s)
	case c.Kind == nil:
		return RejectedError{Text: "missing flags: --kind, the kind of the entity or shard; or ask for the cluster: quorate why cluster"}
	}
	path := "/v1/kinds/" + segment(*c.Kind)
	switch {
	case *c.Kind == "":
		return RejectedError{Text: "-kind is empty: it is the name of the kind of entity"}
	case c.Entity != "" && c.Shard != nil:
		return RejectedError{Text: fmt.Sprintf("both the entity %q and -shard %d were given: ask for one of them", c.Entity, *c.Shard)}
	case c.Shard != nil:
		path += "/shards/" + strconv.Itoa(*c.Shard)
	case c.Entity != "":
		path += "/entities/" + segment(c.Entity)
	default:
		return RejectedError{Text: "what is asked for? Give the id of an entity, or -shard with its number"}
	}
	var got management.Explanation
	raw, err := c.get(path, nil, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	c.print(s, got)
	return nil
}

// cluster asks why the cluster is as it is.
func (c *WhyCommand) cluster(s *Session) error {
	var got management.ClusterReasons
	raw, err := c.get("/v1/why", nil, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	w := s.Stdout
	field(w, "asked", got.Self)
	for _, f := range got.Findings {
		fmt.Fprintln(w)
		fmt.Fprintln(w, s.Paint(map[bool]int{true: 31, false: 32}[f.Trouble], clipped(f.About)))
		field(w, "is", f.Is)
		for _, why := range f.Because {
			field(w, "because", why)
		}
		field(w, "cure", f.Cure)
	}
	return nil
}

// clipped makes text of a node printable in one line.
func clipped(text string) string {
	text = printable(text)
	if runes := []rune(text); len(runes) > columns {
		return string(runes[:columns])
	}
	return text
}

// segment escapes any text, "." and ".." included, so that it is one segment of a path.
func segment(text string) string { return strings.ReplaceAll(url.PathEscape(text), ".", "%2E") }

// print writes the explanation for people.
func (c *WhyCommand) print(s *Session, e management.Explanation) {
	w := s.Stdout
	field(w, "kind", e.Kind)
	field(w, "entity", e.Entity)
	field(w, "shard", strconv.Itoa(e.Shard))
	home := e.Home
	if home == "" {
		home = "none at present"
	} else if e.Home == e.Self {
		home += " (the node asked)"
	}
	field(w, "home", home)
	if e.State != "" {
		colour := 31
		if e.State == "serving" {
			colour = 32
		}
		fmt.Fprintf(w, "%-*s%s\n", labelWidth, "state", s.Paint(colour, printable(e.State)))
	}
	field(w, "since", moment(e.Since))
	field(w, "epoch", e.Epoch)
	field(w, "decision", e.Decision)
	field(w, "because", e.Reason)
	for _, pending := range e.Pending {
		field(w, "waits for", pending)
	}
	field(w, "coordinator", e.Coordinator)
	field(w, "asked", e.Self)
	if !e.Complete && e.Coordinator != "" && e.Coordinator != e.Self {
		field(w, "", "The node asked is not the coordinator, which may know more.")
	}
	if len(e.History) == 0 {
		return
	}
	fmt.Fprintln(w, "\nhistory")
	for _, m := range e.History {
		c.printMove(s, m)
	}
}

// printMove writes one change of home.
func (c *WhyCommand) printMove(s *Session, m management.Move) {
	const indent = 24
	from, to := m.From, m.To
	if from == "" {
		from = "no home"
	}
	if to == "" {
		to = "no home"
	}
	fmt.Fprintf(s.Stdout, "  %-20s  ", moment(m.At))
	paragraph(s.Stdout, indent, from+" -> "+to)
	detail := m.Reason
	if m.Epoch != "" {
		detail = strings.TrimSuffix("epoch "+m.Epoch+": "+detail, ": ")
	}
	if detail != "" {
		fmt.Fprintf(s.Stdout, "%*s", indent, "")
		paragraph(s.Stdout, indent, detail)
	}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/ddata"
)

// The commands ask a running node about its replicated data, and print the answer: the groups
// of keys, the names of keys, the value of one, and why it is as it is; last the one that has a
// group go on after a loss.

// GroupsOfData is the command that asks a node for its groups of keys.
type GroupsOfData struct {
	RemoteFlags
}

// KeysOfData is the command that asks a node for the names of keys.
type KeysOfData struct {
	Prefix string `arg:"" optional:"" help:"How the names begin."`
	Limit  int    `default:"100" help:"The most names to print, 1 to 10000 (${default})."`

	RemoteFlags
}

// GetData is the command that asks a node for the value of a key.
type GetData struct {
	Name     string `arg:"" name:"key" help:"The name of a key."`
	Majority bool   `help:"Read from a majority of the replicas, and not what the node holds."`

	RemoteFlags
}

// WhyData is the command that asks a node why a key is as it is.
type WhyData struct {
	Name string `arg:"" name:"key" help:"The name of a key."`

	RemoteFlags
}

// AcceptDataLoss is the command that has a group go on after a loss.
type AcceptDataLoss struct {
	Group string `arg:"" help:"The name of a group of keys."`
	Yes   bool   `short:"y" help:"Do not ask whether it is meant."`

	RemoteFlags

	stdin    io.Reader
	terminal bool
}

// NewData returns the command for data. It asks for confirmations on stdin if that is a
// terminal; otherwise it requires -yes.
func NewData(stdin io.Reader, terminal bool) *Data {
	return &Data{AcceptLoss: AcceptDataLoss{stdin: stdin, terminal: terminal}}
}

// Help is the text after the one-line help.
func (*GroupsOfData) Help() string {
	return `Prints the groups of replicated keys: their replicas, which of them lack something
or cannot be reached, how much the node asked holds, and its store. A group is all
keys without settings of their own, the durable ones, or those with a prefix.

Examples:
  quorate data groups
  quorate data groups -node http://10.0.0.7:8080
  quorate --json data groups | jq '.groups[] | select(.quorum | not)'`
}

// Help is the text after the one-line help.
func (*KeysOfData) Help() string {
	return `Prints the names of keys that the node asked holds, a line each, those included that
were deleted or have expired lately.

Examples:
  quorate data keys
  quorate data keys session/ -limit 10000
  quorate --json data keys session/ | jq '.keys | length'`
}

// Help is the text after the one-line help.
func (*GetData) Help() string {
	return `Prints the value of a key as text, at most 64 KiB of it, or the encoding of a value
without a text in base64. It is what the node holds, or, with -majority, what a
majority of the replicas does.

Examples:
  quorate data get visits
  quorate data get visits -majority
  quorate --json data get visits | jq -r .text
  quorate data get -- -a-key-with-a-hyphen`
}

// Help is the text after the one-line help.
func (*WhyData) Help() string {
	return `Prints where a key lives and why it is as it is: its replicas, what each of them
holds, which updates it lacks and since when, which operations wait and for whom, and
what keeps a deleted key from being forgotten. The node asks the replicas, for a
second at most.

Examples:
  quorate data why visits
  quorate data why visits -node http://10.0.0.7:8080
  quorate --json data why visits | jq '.homes[] | select(.lacks)'`
}

// Help is the text after the one-line help.
func (*AcceptDataLoss) Help() string {
	return `Has a group of keys go on with what the node asked holds, although replicas that are
needed for a majority are gone for good. The others copy what this one holds; what
only the lost ones held is lost. Look with quorate data groups on each node first,
and choose the one that holds most. If the lost ones can be started with their
disks, start them instead: one that comes back later drops its copy, and keeps it
aside if it is on disk. Of replicas whose disks were put back to older states, those
hold less that are apart because others remember more of them.

The node refuses while enough replicas are left. Only an operator may ask for it: over
the Unix socket of the node, with a token, or with a certificate. The exit status is 1 when it refuses or does not answer, and 2 without a
confirmation.

Examples:
  quorate data groups
  quorate data accept-loss durable
  quorate data accept-loss durable -yes -token-file ~/.quorate-token`
}

// Run asks the node, and prints the answer.
func (c *GroupsOfData) Run(s *Session) error {
	var got cluster.DataGroups
	raw, err := c.get("/v1/data", nil, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	field(s.Stdout, "asked", got.Self)
	for _, g := range got.Groups {
		fmt.Fprintln(s.Stdout)
		printGroup(s, g)
	}
	return nil
}

// printGroup writes a group of keys for people.
func printGroup(s *Session, g ddata.Group) {
	w := s.Stdout
	field(w, "group", g.Name)
	field(w, "role", g.Role)
	if g.Copies > 0 {
		field(w, "copies", strconv.Itoa(g.Copies))
	}
	if g.ExpireAfter > 0 {
		field(w, "expires", "after "+g.ExpireAfter.String())
	}
	switch {
	case g.Generation == 0:
		field(w, "replicas", "not known yet")
	case g.Quorum:
		fmt.Fprintf(w, "%-*s%s\n", labelWidth, "quorum", s.Paint(32, "reachable"))
	default:
		fmt.Fprintf(w, "%-*s%s\n", labelWidth, "quorum", s.Paint(31, "not reachable"))
	}
	field(w, "refused", g.Refused)
	field(w, "apart", g.Apart)
	if !g.Unsure.IsZero() {
		field(w, "unsure", "since "+moment(g.Unsure))
	}
	if g.Generation > 0 {
		field(w, "generation", fmt.Sprintf("%d, %s, since %s", g.Generation, g.Phase, moment(g.Since)))
	}
	field(w, "leader", g.Leader)
	if g.Holds {
		field(w, "holds", fmt.Sprintf("%s, %s, %d bytes", plural(g.Keys, "key"), plural(g.Tombs, "tombstone"), g.Bytes))
	}
	if g.Waiting > 0 {
		field(w, "waits", plural(g.Waiting, "operation"))
	}
	if len(g.CatchesUp) > 0 {
		field(w, "catches up", "from "+strings.Join(g.CatchesUp, ", "))
	}
	field(w, "store", g.Store)
	field(w, "disputed", g.Disputed)
	field(w, "no majority", g.Lost)
	for _, h := range g.Held {
		field(w, "held back", heldText(h))
	}
	for _, file := range g.Asides {
		field(w, "put aside", file)
	}
	for _, r := range g.Replicas {
		field(w, "replica", replicaText(r))
	}
}

// heldText says in a line which keys have lost their replicas.
func heldText(h ddata.Held) string {
	text := plural(h.Buckets, "bucket") + " of " + strings.Join(h.Replicas, ", ")
	switch {
	case h.Moves:
		return text + ": recovering"
	case len(h.Gone) == 0:
		return text + ": waiting for the next change"
	default:
		return text + ": gone are " + strings.Join(h.Gone, ", ") + ": start them again with their disks, or accept the loss"
	}
}

// replicaText says in a line what is known of a replica.
func replicaText(r ddata.Replica) string {
	notes := []string{cmp.Or(r.Node, "number "+r.ID), strings.Join(r.Sets, " and ")}
	if !r.Reachable {
		notes = append(notes, "not reachable")
		if !r.Heard.IsZero() {
			notes = append(notes, "heard last "+moment(r.Heard))
		}
	}
	if r.Unsure {
		notes = append(notes, "does not count for now: its node has crashed before everything was written")
	} else if r.Apart {
		notes = append(notes, "does not count for now: its store is, or may be, older than it was")
	}
	if !r.CaughtUp {
		notes = append(notes, "lacks something, as far as is known")
	}
	if r.Zone != "" {
		notes = append(notes, "zone "+r.Zone)
	}
	return strings.Join(notes, ", ")
}

// Run asks the node, and prints the answer.
func (c *KeysOfData) Run(s *Session) error {
	query := url.Values{"limit": {strconv.Itoa(c.Limit)}}
	if c.Prefix != "" {
		query.Set("prefix", c.Prefix)
	}
	var got cluster.DataKeys
	raw, err := c.get("/v1/data/keys", query, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	for _, key := range got.Keys {
		fmt.Fprintln(s.Stdout, printable(key))
	}
	if got.More {
		fmt.Fprintln(s.Stderr, "There are more keys: see -limit.")
	}
	return nil
}

// Run asks the node, and prints the answer.
func (c *GetData) Run(s *Session) error {
	var query url.Values
	if c.Majority {
		query = url.Values{"consistency": {"majority"}}
	}
	var got ddata.Value
	raw, err := c.get("/v1/data/keys/"+segment(c.Name), query, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	w := s.Stdout
	field(w, "key", got.Key)
	field(w, "group", got.Group)
	field(w, "state", got.State)
	field(w, "type", got.Type)
	field(w, "value", got.Text)
	field(w, "encoded", got.Encoded)
	if got.Truncated {
		field(w, "", fmt.Sprintf("The value is longer: it takes %d bytes.", got.Bytes))
	}
	field(w, "updates", updates(got.Versions))
	return nil
}

// updates says how many updates of each origin are meant.
func updates(all []ddata.OriginVersion) string {
	var texts []string
	for _, v := range all {
		texts = append(texts, fmt.Sprintf("%d of %x", v.Count, v.Origin))
	}
	return strings.Join(texts, ", ")
}

// Run asks the node, and prints the answer.
func (c *WhyData) Run(s *Session) error {
	var got ddata.Explanation
	raw, err := c.get("/v1/data/explain", url.Values{"key": {c.Name}}, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	printData(s, got)
	return nil
}

// printData writes where a key lives, and why it is as it is.
func printData(s *Session, got ddata.Explanation) {
	w := s.Stdout
	field(w, "key", got.Key)
	field(w, "state", got.State)
	field(w, "type", got.Type)
	field(w, "updates", updates(got.Versions))
	field(w, "kept", got.Kept)
	if got.Held != nil {
		field(w, "held back", heldText(*got.Held))
	}
	field(w, "asked", got.Self)
	fmt.Fprintln(w)
	printGroup(s, got.Group)
	if len(got.Homes) > 0 {
		fmt.Fprintln(w, "\nhomes")
	}
	for _, h := range got.Homes {
		printHome(w, h)
	}
	for _, o := range got.Waiting {
		fmt.Fprintln(w)
		field(w, "waits", fmt.Sprintf("a %s at the level %s, since %s, for %s", o.Kind, o.Level, moment(o.Since), cmp.Or(strings.Join(o.Missing, ", "), "the store")))
	}
}

// printHome writes what a replica holds of a key.
func printHome(w io.Writer, h ddata.Home) {
	indented := func(indent int, text string) {
		fmt.Fprintf(w, "%*s", indent, "")
		paragraph(w, indent, text)
	}
	indented(2, h.Replica)
	switch {
	case !h.Answered:
		indented(6, "has not answered")
	case h.Undead:
		indented(6, fmt.Sprintf("%s, lacks that the key was deleted%s", h.State, since(h.Since)))
	case len(h.Lacks) > 0:
		indented(6, fmt.Sprintf("%s, lacks %s%s", h.State, updates(h.Lacks), since(h.Since)))
	default:
		indented(6, h.State+", lacks nothing")
	}
	if !h.Unread.IsZero() {
		indented(6, "a batch with the key has waited for it since "+moment(h.Unread))
	}
}

// since says since when something is so, if that is known.
func since(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return ", since " + moment(at)
}

// Run asks the node how the group stands and the user for confirmation, and has the node
// accept the loss.
func (c *AcceptDataLoss) Run(s *Session) error {
	var before cluster.DataGroups
	if _, err := c.get("/v1/data", nil, &before); err != nil {
		return err
	}
	if err := c.confirm(s, before); err != nil {
		return err
	}
	var got cluster.DataGroups
	raw, err := c.operate("/v1/data/accept-loss?group="+url.QueryEscape(c.Group), cluster.AcceptLossOperation, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	field(s.Stdout, "accepted", "the loss of what "+got.Self+" does not hold of "+c.Group)
	for _, g := range got.Groups {
		if g.Name == c.Group {
			fmt.Fprintln(s.Stdout)
			printGroup(s, g)
		}
	}
	return nil
}

// confirm shows the group, and asks the user for confirmation.
func (c *AcceptDataLoss) confirm(s *Session, before cluster.DataGroups) error {
	if c.Yes {
		return nil
	}
	if !c.terminal {
		return RejectedError{Text: "standard input is no terminal: say -yes if the other replicas are gone for good"}
	}
	onError := *s
	onError.Stdout = s.Stderr
	for _, g := range before.Groups {
		if g.Name == c.Group {
			printGroup(&onError, g)
			fmt.Fprintln(s.Stderr)
		}
	}
	paragraph(s.Stderr, 0, fmt.Sprintf("%s would go on with what it holds. What only the other replicas hold is lost, also if they come back.", before.Self))
	fmt.Fprint(s.Stderr, "Are they gone for good? Type yes to go on: ")
	return meant(s, c.stdin, "the other replicas are gone for good")
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/management"
)

// The commands about what a node hosts: shards and entities list, drain has the node host nothing
// and waits for that, undrain has it host again, move has a shard move, reshard has a kind have
// another number of shards.

// Shards is the command that lists kinds, or the shards of one.
type Shards struct {
	Kind string        `arg:"" optional:"" help:"The kind of which to list the shards."`
	Why  bool          `help:"Ask the coordinator for the reasons of the first 10 shards that wait for something."`
	All  bool          `help:"Have the node ask all nodes what they host of the kind."`
	Wait time.Duration `default:"3s" help:"With -all: how long to wait for the nodes, 1s to 1m (${default})."`

	RemoteFlags
}

// Entities is the command that lists the entities of a kind that live on a node.
type Entities struct {
	Kind  string        `arg:"" help:"The kind."`
	Limit int           `default:"100" help:"The most entities to print, 1 to 10000, with -all to 1000 (${default})."`
	All   bool          `help:"Have the node ask all nodes which entities live there."`
	After string        `help:"With -all: go on behind the page that has printed this."`
	Wait  time.Duration `default:"3s" help:"With -all: how long to wait for the nodes, 1s to 1m (${default})."`

	RemoteFlags
}

// Drain is the command that has a node host nothing.
type Drain struct {
	At   string        `arg:"" optional:"" name:"node" help:"The node, as with -node."`
	Wait time.Duration `default:"1m" help:"How long to wait until the node hosts nothing, from 1s (${default})."`

	RemoteFlags
}

// MoveShard is the command that has a shard move to a node.
type MoveShard struct {
	Kind  string `arg:"" help:"The kind."`
	Shard int    `arg:"" help:"The number of the shard."`
	To    string `arg:"" help:"Where to: the address of a node, as quorate members prints it."`

	RemoteFlags
}

// Reshard is the command that has a kind have another number of shards, or says how far that is.
type Reshard struct {
	Kind   string `arg:"" help:"The kind."`
	Shards *int   `arg:"" optional:"" help:"How many shards the kind is to have, 1 to 65536. Without it, how far a change is."`

	RemoteFlags
}

// Undrain is the command that has a drained node host again.
type Undrain struct {
	At string `arg:"" optional:"" name:"node" help:"The node, as with -node."`

	RemoteFlags
}

// Help is the text after the one-line help.
func (*Shards) Help() string {
	return `Prints the kinds that run on the node asked, with how many shards of each live on it
and who coordinates; or the shards of one kind, as that node knows them: where each
lives, what the node does with it, how many entities live there, and how many
messages wait; and its location, if it lives elsewhere and the node follows locations.
With -why the coordinator is asked for the reasons of those that wait: without a home,
on their way, with an entity that does not return, or with messages that nobody has
taken; quorate why asks for one of them. With -all the node asks all others what they
host; the exit status is 1 when some do not answer, and the output says which and why.

Examples:
  quorate shards
  quorate shards account -node http://10.0.0.7:8080
  quorate shards account -why
  quorate shards account -all
  quorate --json shards account | jq '.shards[] | select(.sent > 0)'`
}

// Help is the text after the one-line help.
func (*Entities) Help() string {
	return `Prints the entities of a kind that live on the node asked, a line each: its shard,
what it does and since when, how many messages wait for it, and why it has failed.
With -all the node asks all others, and the list has the entities of all of them, by
shard and id, a page at a time; the exit status is 1 when some do not answer.

Examples:
  quorate entities account
  quorate entities account -limit 10000 -node http://10.0.0.7:8080
  quorate entities account -all -after 17/acct-42
  quorate --json entities account | jq -r '.entities[] | select(.stuck).id'`
}

// Help is the text after the one-line help.
func (*Drain) Help() string {
	return `Has the node host nothing: its shards move to other nodes, a few at a time, and it is
given no other. It stays a member, and goes on to send messages and to coordinate.
What is left is printed while it shrinks. While all nodes that can host a kind are
drained, it is as if none was. The node hosts again after quorate undrain, or when
it is started again.
Only an operator may ask for it: over the Unix socket of the node, with a token, or
with a certificate; see management.operators. The exit status is 1 when the node
refuses or does not answer, or still hosts shards when the time to wait is over: it
goes on to hand them over then, and the command may be repeated. The output then has
the reasons of what is left.

Examples:
  quorate drain unix:///run/bank/operators
  quorate drain http://10.0.0.7:8080 -token-file ~/.quorate-token
  quorate drain -wait 10m -token-file ~/.quorate-token
  quorate --json drain -token-file ~/.quorate-token | jq .hosts`
}

// Help is the text after the one-line help.
func (*MoveShard) Help() string {
	return `Has a shard move to a node, beside the moves that even out the load. Any node may be
asked. The command ends when the move has begun; quorate why says what becomes of
it. The allocation strategy may move the shard again when it finds the load uneven.
Only an operator may ask for it: over the Unix socket of the node, with a token, or
with a certificate; see management.operators. The exit status is 1 when nothing moves.

Examples:
  quorate move account 17 10.0.0.7:7946 -token-file ~/.quorate-token
  quorate move account 17 bank-2.bank:7946 -node unix:///run/bank/operators
  quorate --json move account 17 10.0.0.7:7946 -token-file token | jq .to`
}

// Help is the text after the one-line help.
func (*Reshard) Help() string {
	return `Has a kind have another number of shards, without stopping anything. Any node may be
asked. The command ends when the change has begun; without a number it prints how far
the change is, as the node asked knows. A few shards at a time, as many as may move,
are retired, and their entities live in the new shards from then on. The change comes
to its end whatever becomes of nodes meanwhile. It cannot be taken back, but another
one may follow, when the entities that were remembered are taken over. Change
sharding.number-of-shards in the files of the nodes, or the number in the program, at
the next restart of each.
Only an operator may ask for it: over the Unix socket of the node, with a token, or
with a certificate; see management.operators. The exit status is 1 when no change
begins, as when another one is under way.

Examples:
  quorate reshard account 2000 -token-file ~/.quorate-token
  quorate reshard account -node 10.0.0.7:8080
  quorate --json reshard account | jq .resharding.retired`
}

// Help is the text after the one-line help.
func (*Undrain) Help() string {
	return `Has a drained node host again. Shards come to it when the load is next evened out.
Only an operator may ask for it: over the Unix socket of the node, with a token, or
with a certificate; see management.operators.

Examples:
  quorate undrain unix:///run/bank/operators
  quorate undrain -token-file ~/.quorate-token
  quorate --json undrain -token-file ~/.quorate-token | jq .drained`
}

// Run asks the node, and prints the answer.
func (c *Shards) Run(s *Session) error {
	if c.Why && (c.Kind == "" || c.All) {
		return RejectedError{Text: "-why is for the shards of one kind as one node knows them: name the kind, and leave -all out"}
	}
	if c.Kind == "" {
		return c.kinds(s)
	}
	if c.All {
		return c.all(s)
	}
	var got cluster.ShardList
	raw, err := c.get("/v1/kinds/"+url.PathEscape(c.Kind)+"/shards", nil, &got)
	if err != nil {
		return err
	}
	var whys map[int]management.Explanation
	more := 0
	if c.Why {
		if whys, more, err = c.reasons(got, waiting); err != nil {
			return err
		}
	}
	if s.JSON {
		return c.printJSON(s, raw, got, whys)
	}
	c.print(s, got, whys)
	if more > 0 {
		fmt.Fprintf(s.Stdout, "%d more wait: quorate why asks for one of them.\n", more)
	}
	return nil
}

// printJSON writes the answer of the node, with the reasons if they were asked for.
func (c *Shards) printJSON(s *Session, raw json.RawMessage, got cluster.ShardList, whys map[int]management.Explanation) error {
	if !c.Why {
		return s.PrintJSON(raw)
	}
	return s.PrintJSON(struct {
		cluster.ShardList

		Why map[int]management.Explanation `json:"why"`
	}{got, whys})
}

// print writes the shards for people.
func (c *Shards) print(s *Session, got cluster.ShardList, whys map[int]management.Explanation) {
	field(s.Stdout, "asked", got.Self)
	fmt.Fprintln(s.Stdout)
	lead, latest := fmt.Sprintf("%6s  %-16s  %8s  %7s  ", "shard", "state", "entities", "waiting"), latestLayout(got)
	fmt.Fprintln(s.Stdout, lead+"home")
	for _, x := range got.Shards {
		home := x.Home
		if home == "" {
			home = "none"
		}
		fmt.Fprintf(s.Stdout, "%6d  %-16s  %8d  %7d  ", x.Shard, x.State, x.Entities, x.Sent+x.Passed)
		if at := got.Locations[x.Shard]; at != "" {
			home += ", its location is " + at
		}
		paragraph(s.Stdout, len(lead), home)
		if why, asked := whys[x.Shard]; asked && x.Layout == latest {
			printReasons(s, len("shard")+3, x.Stuck, why)
		}
	}
	if got.LocationsUnread != "" {
		fmt.Fprintln(s.Stderr, "Locations are not shown: "+printable(got.LocationsUnread))
	}
}

// kinds asks for the kinds of the node.
func (c *Shards) kinds(s *Session) error {
	var got management.KindList
	raw, err := c.get("/v1/kinds", nil, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	field(s.Stdout, "asked", got.Self)
	for _, k := range got.Kinds {
		fmt.Fprintln(s.Stdout)
		field(s.Stdout, "kind", k.Name)
		here := fmt.Sprintf("%d of %s", k.Hosted, plural(k.Shards, "shard"))
		if k.Proxy {
			here = "nothing, it only sends: " + plural(k.Shards, "shard")
		}
		field(s.Stdout, "hosts", here)
		switch {
		case k.Coordinator != "":
			field(s.Stdout, "coordinator", k.Coordinator)
		case k.NoCoordinator != "":
			field(s.Stdout, "coordinator", "none: "+k.NoCoordinator)
		default:
			field(s.Stdout, "coordinator", "not known")
		}
	}
	return nil
}

// Run asks the node, and prints the answer.
func (c *Entities) Run(s *Session) error {
	if c.All {
		return c.all(s)
	}
	var got cluster.EntityList
	query := url.Values{"limit": {strconv.Itoa(c.Limit)}}
	raw, err := c.get("/v1/kinds/"+url.PathEscape(c.Kind)+"/entities", query, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	field(s.Stdout, "asked", got.Self)
	if len(got.Entities) == 0 {
		fmt.Fprintln(s.Stdout, "No entity of the kind lives on it.")
		return nil
	}
	fmt.Fprintln(s.Stdout)
	lead := fmt.Sprintf("%6s  %-8s  %7s  %-20s  ", "shard", "state", "waiting", "since")
	fmt.Fprintln(s.Stdout, lead+"entity")
	for _, e := range got.Entities {
		state := e.State
		if e.Stuck {
			state = "stuck"
		}
		fmt.Fprintf(s.Stdout, "%6d  %-8s  %7d  %-20s  ", e.Shard, state, e.Waiting, moment(e.Since))
		paragraph(s.Stdout, len(lead), strings.TrimSuffix(e.ID+": "+e.Reason, ": "))
	}
	if got.More {
		fmt.Fprintln(s.Stdout, "There are more: -limit says how many to print.")
	}
	return nil
}

// drainRound is how long the node waits at most before it says what is left.
const drainRound = 5 * time.Second

// Run asks the node until it hosts nothing, or the time is over, and prints what is left.
func (c *Drain) Run(s *Session) error {
	if err := c.use(c.At); err != nil {
		return err
	}
	c.Timeout = max(c.Timeout, 2*drainRound)
	for end := time.Now().Add(c.Wait); ; {
		seconds := max(1, int(min(drainRound, time.Until(end)).Round(time.Second)/time.Second))
		var got cluster.Draining
		raw, err := c.operate("/v1/drain/begin?wait="+strconv.Itoa(seconds), cluster.DrainOperation, &got)
		if err != nil {
			return err
		}
		left := len(got.Hosts) > 0
		if left && time.Now().Before(end) {
			fmt.Fprintf(s.Stderr, "%s still hosts %s\n", got.Self, hosts(got))
			continue
		}
		if err := printDraining(s, got, raw); err != nil {
			return err
		}
		if !left {
			return nil
		}
		if !s.JSON {
			c.printLeft(s, got)
		}
		return fmt.Errorf("%s still hosts %s, and hands them over: repeat the command to go on waiting", got.Self, hosts(got))
	}
}

// printLeft writes why the node still hosts shards.
func (c *Drain) printLeft(s *Session, got cluster.Draining) {
	for _, of := range got.Hosts {
		var list cluster.ShardList
		_, err := c.get("/v1/kinds/"+url.PathEscape(of.Kind)+"/shards", nil, &list)
		whys, _, failed := c.reasons(list, hosted)
		if err := errors.Join(err, failed); err != nil {
			fmt.Fprintf(s.Stderr, "Reasons of %s are not shown: %s\n", printable(of.Kind), printable(err.Error()))
			continue
		}
		for _, x := range list.Shards {
			if why, asked := whys[x.Shard]; asked && hosted(x) && x.Layout == latestLayout(list) {
				fmt.Fprintf(s.Stdout, "\nshard %d of %s\n", x.Shard, printable(of.Kind))
				printReasons(s, len("  "), x.Stuck, why)
			}
		}
	}
}

// Run asks the node, and prints the answer.
func (c *MoveShard) Run(s *Session) error {
	var got cluster.ShardMove
	path := fmt.Sprintf("/v1/kinds/%s/shards/%d/move?%s", url.PathEscape(c.Kind), c.Shard, url.Values{"to": {c.To}}.Encode())
	raw, err := c.operate(path, cluster.MoveShardOperation, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	field(s.Stdout, "asked", got.Self)
	field(s.Stdout, "moves", fmt.Sprintf("shard %d of %s to %s", got.Shard, got.Kind, got.To))
	return nil
}

// Run asks the node, and prints the answer.
func (c *Reshard) Run(s *Session) error {
	var got cluster.KindReshard
	path := "/v1/kinds/" + url.PathEscape(c.Kind) + "/"
	raw, err := json.RawMessage(nil), error(nil)
	if c.Shards == nil {
		raw, err = c.get(path+"resharding", nil, &got)
	} else {
		raw, err = c.operate(path+"reshard?shards="+strconv.Itoa(*c.Shards), cluster.ReshardOperation, &got)
	}
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	field(s.Stdout, "asked", got.Self)
	field(s.Stdout, "shards", strconv.Itoa(got.Shards))
	change := "none is under way"
	if r := got.Resharding; r != nil {
		change = fmt.Sprintf("from %d to %d, and %d of the former are retired", r.From, r.To, r.Retired)
	}
	field(s.Stdout, "change", change)
	if got.TakingOver {
		field(s.Stdout, "remembered", "entities of another number of shards are being taken over")
	}
	return nil
}

// Run asks the node, and prints the answer.
func (c *Undrain) Run(s *Session) error {
	if err := c.use(c.At); err != nil {
		return err
	}
	var got cluster.Draining
	raw, err := c.operate("/v1/drain/end", cluster.UndrainOperation, &got)
	if err != nil {
		return err
	}
	return printDraining(s, got, raw)
}

// printDraining prints whether a node is drained, and what it hosts.
func printDraining(s *Session, got cluster.Draining, raw json.RawMessage) error {
	if s.JSON {
		return s.PrintJSON(raw)
	}
	field(s.Stdout, "asked", got.Self)
	field(s.Stdout, "drained", map[bool]string{true: "yes", false: "no"}[got.Drained])
	field(s.Stdout, "hosts", hosts(got))
	return nil
}

// hosts says in words what a node hosts.
func hosts(got cluster.Draining) string {
	if len(got.Hosts) == 0 {
		return "nothing"
	}
	parts := make([]string, 0, len(got.Hosts))
	for _, h := range got.Hosts {
		parts = append(parts, plural(h.Shards, "shard")+" of "+h.Kind)
	}
	return strings.Join(parts, ", ")
}

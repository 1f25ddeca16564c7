// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/quorate/quorate/cluster"
)

// The commands about where shards should live: list prints it, set says it of shards that are named or of
// many by lines, clear withdraws it. What set is given is read as a whole ([wantedShards],
// [wantedLines]) before the node is asked, so that a mistake changes nothing.

// Locations is the command about where shards should live.
type Locations struct {
	List  ListLocations  `cmd:"" help:"Ask a node where the shards of a kind should live."`
	Set   SetLocations   `cmd:"" help:"Say where shards should live."`
	Clear ClearLocations `cmd:"" help:"Withdraw all that was said of a kind."`
}

// NewLocations returns the command for locations, which may come from stdin.
func NewLocations(stdin io.Reader) *Locations { return &Locations{Set: SetLocations{stdin: stdin}} }

// ListLocations is the command that lists the locations of a kind.
type ListLocations struct {
	Kind string `arg:"" help:"The kind."`

	RemoteFlags
}

// SetLocations is the command that sets locations of a kind.
type SetLocations struct {
	Kind   string `arg:"" help:"The kind."`
	Shards string `arg:"" help:"The numbers of shards, as in 0-99,120; or - for lines of a shard and a node each, from standard input."`
	To     string `arg:"" optional:"" help:"Where: the address of a node, as quorate members prints it. None: nowhere in particular."`

	RemoteFlags

	stdin io.Reader
}

// ClearLocations is the command that withdraws the locations of a kind.
type ClearLocations struct {
	Kind string `arg:"" help:"The kind."`

	RemoteFlags
}

// Help is the text after the one-line help.
func (*ListLocations) Help() string {
	return `Prints the locations of the shards of a kind, a line each: where the shard should live
and, if it lives elsewhere, where. Only the allocation strategy external follows
locations. The kind need not run on the node asked.

Examples:
  quorate locations list account
  quorate locations list account -node http://10.0.0.7:8080
  quorate --json locations list account | jq '.locations | length'`
}

// Help is the text after the one-line help.
func (*SetLocations) Help() string {
	return `Says where shards of a kind should live. The coordinator moves them there when it next
looks, a few at a time, if its allocation strategy is external. While no node with
that address can host the kind, the shards live elsewhere.
The kind must run on the node asked. A majority of the nodes that hold replicated
data has the locations when the command ends with exit status 0; after another one
nothing or a part has changed, and the command may be repeated.
Only an operator may ask for it: over the Unix socket of the node, with a token, or
with a certificate; see management.operators.

Examples:
  quorate locations set account 0-99,120 10.0.0.7:7946 -token-file ~/.token
  quorate locations set account 17 -node unix:///run/bank/operators
  awk '{print $1, $2}' plan | quorate locations set account - -token-file t`
}

// Help is the text after the one-line help.
func (*ClearLocations) Help() string {
	return `Withdraws the locations of all shards of a kind, which need not run any more. The
shards stay where they live.
Only an operator may ask for it: over the Unix socket of the node, with a token, or
with a certificate; see management.operators.

Examples:
  quorate locations clear account -token-file ~/.quorate-token
  quorate locations clear account -node unix:///run/bank/operators
  quorate --json locations clear account -token-file token | jq .shards`
}

// pathOf returns the path of the locations of a kind.
func pathOf(kind string) string { return "/v1/kinds/" + segment(kind) + "/locations" }

// Run asks the node, and prints the answer.
func (c *ListLocations) Run(s *Session) error {
	var got cluster.LocationList
	raw, err := c.get(pathOf(c.Kind), url.Values{}, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	field(s.Stdout, "asked", got.Self)
	field(s.Stdout, "followed", followed(got.Followed))
	if len(got.Locations) == 0 {
		fmt.Fprintln(s.Stdout, "No shard of the kind has a location.")
		return nil
	}
	fmt.Fprintln(s.Stdout)
	lead := fmt.Sprintf("%6s  ", "shard")
	fmt.Fprintln(s.Stdout, lead+"location")
	for _, l := range got.Locations {
		text := l.Node
		switch at, _, _ := strings.Cut(l.Home, "#"); {
		case !l.Member:
			text += ", no member has that address"
		case at != l.Node && at != "":
			text += ", lives at " + l.Home
		}
		fmt.Fprintf(s.Stdout, "%6d  ", l.Shard)
		paragraph(s.Stdout, len(lead), text)
	}
	return nil
}

// followed says whether a node follows locations.
func followed(yes bool) string {
	if yes {
		return "yes"
	}
	return "no, the strategy of the node asked is not external"
}

// Run asks the node, and prints the answer.
func (c *SetLocations) Run(s *Session) error {
	wanted, err := wantedShards(c.Shards, c.To)
	if c.Shards == "-" {
		if c.To != "" {
			return RejectedError{Text: "lines from standard input name their nodes themselves: give no node"}
		}
		wanted, err = wantedLines(c.stdin)
	}
	if err != nil {
		return RejectedError{Text: err.Error()}
	}
	body, err := json.Marshal(cluster.LocationsRequest{Locations: wanted})
	if err != nil {
		return err
	}
	var got cluster.LocationsChanged
	raw, err := c.tell(pathOf(c.Kind)+"/set", cluster.SetLocationsOperation, bytes.NewReader(body), &got)
	if err != nil {
		return err
	}
	return printChanged(s, got, raw, "set")
}

// Run asks the node, and prints the answer.
func (c *ClearLocations) Run(s *Session) error {
	var got cluster.LocationsChanged
	raw, err := c.operate(pathOf(c.Kind)+"/clear", cluster.ClearLocationsOperation, &got)
	if err != nil {
		return err
	}
	return printChanged(s, got, raw, "cleared")
}

// printChanged prints what has changed.
func printChanged(s *Session, got cluster.LocationsChanged, raw json.RawMessage, what string) error {
	if s.JSON {
		return s.PrintJSON(raw)
	}
	field(s.Stdout, "asked", got.Self)
	field(s.Stdout, what, plural(got.Shards, "shard")+" of "+got.Kind)
	field(s.Stdout, "followed", followed(got.Followed))
	return nil
}

// maxShards is how many shards a kind has at most.
const maxShards = 65_536

// wantedShards reads numbers and ranges of shards.
func wantedShards(text, to string) (all []cluster.Location, err error) {
	for part := range strings.SplitSeq(text, ",") {
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		from, err := strconv.ParseUint(low, 10, 16)
		till, err2 := strconv.ParseUint(high, 10, 16)
		if err != nil || err2 != nil || from > till {
			return nil, fmt.Errorf("%q is neither the number of a shard, from 0 to %d, nor a range such as 0-99", part, maxShards-1)
		}
		for shard := int(from); shard <= int(till); shard++ {
			all = append(all, cluster.Location{Shard: shard, Node: to})
		}
		if len(all) > maxShards {
			return nil, fmt.Errorf("%q names shards twice: a kind has %d at most", text, maxShards)
		}
	}
	return all, nil
}

// wantedLines reads lines of a shard and a node each; a line with a shard alone withdraws its location. Empty lines,
// and those that begin with a #, are passed over.
func wantedLines(r io.Reader) (all []cluster.Location, err error) {
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		shard, err := strconv.ParseUint(words[0], 10, 16)
		if err != nil || len(words) > 2 {
			return nil, fmt.Errorf("line %d is not the number of a shard, from 0 to %d, and the address of a node", number, maxShards-1)
		}
		if len(all) == maxShards {
			return nil, fmt.Errorf("line %d: a kind has %d shards at most", number, maxShards)
		}
		words = append(words, "")
		all = append(all, cluster.Location{Shard: int(shard), Node: words[1]})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no line names a shard")
	}
	return all, nil
}

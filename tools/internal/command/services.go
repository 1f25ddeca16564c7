// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/ddata/services/registry"
)

// The commands ask a running node about services and topics, and print the answer: the names,
// where a service is, and why a name or a topic is as it is.

// Registry is the command for services.
type Registry struct {
	Names NamesOfServices `cmd:"" help:"Ask a node for the names of services."`
	Find  FindService     `cmd:"" help:"Ask a node where a service is."`
	Why   WhyService      `cmd:"" help:"Ask a node what is registered under a name, and what of it is not found."`
}

// NamesOfServices is the command that asks a node for the names of services.
type NamesOfServices struct {
	listing
}

// listing are the flags of commands that list names.
type listing struct {
	Prefix string `arg:"" optional:"" help:"How the names begin."`
	Limit  int    `default:"100" help:"The most names to print, 1 to 10000 (${default})."`

	RemoteFlags
}

// FindService is the command that asks a node where a service is.
type FindService struct {
	Name string `arg:"" help:"The name of a service."`

	RemoteFlags
}

// WhyService is the command that asks a node what is registered under a name.
type WhyService struct {
	Name string `arg:"" help:"The name of a service."`

	RemoteFlags
}

// Topics is the command for topics.
type Topics struct {
	Names NamesOfTopics `cmd:"" help:"Ask a node for the names of topics."`
	Why   WhyTopic      `cmd:"" help:"Ask a node where the messages of a topic go, and what waits."`
}

// NamesOfTopics is the command that asks a node for the names of topics.
type NamesOfTopics struct {
	listing
}

// WhyTopic is the command that asks a node about a topic.
type WhyTopic struct {
	Topic string `arg:"" help:"The name of a topic."`

	RemoteFlags
}

// Help is the text after the one-line help.
func (*NamesOfServices) Help() string {
	return `Prints the names of services that the node asked holds, a line each, those included
under which nothing is registered any more.

Examples:
  quorate registry names
  quorate registry names mail/ -limit 10000
  quorate --json registry names | jq -r '.names[]'`
}

// Help is the text after the one-line help.
func (*FindService) Help() string {
	return `Prints the addresses at which a service is registered, a line each, as a program on
the node asked would find them. The exit status is 1 if there is none.

Examples:
  quorate registry find mail
  quorate --json registry find mail | jq -r '.entries[].metadata.tls'`
}

// Help is the text after the one-line help.
func (*WhyService) Help() string {
	return `Prints all entries that are stored under a name, also those that are not found, with
the reason: the node that has registered them is downed or no member. Below that is
where the name is kept, as of quorate data why.

Examples:
  quorate registry why mail
  quorate registry why mail -node http://10.0.0.7:8080
  quorate --json registry why mail | jq '.entries[] | select(.hidden)'`
}

// Help is the text after the one-line help.
func (*NamesOfTopics) Help() string {
	return `Prints the topics that the node asked holds, a line each, those included that have no
subscriber any more.

Examples:
  quorate topics names
  quorate topics names prices/ -limit 10000
  quorate --json topics names | jq -r '.topics[]'`
}

// Help is the text after the one-line help.
func (*WhyTopic) Help() string {
	return `Prints the nodes to which the node asked would send a message of a topic, those with
receivers of each group, of which one gets it, and nodes that are named and get
nothing, since they are downed or no members. Then the subscribers on the node: what
waits for them, and what was dropped. Below that is where the topic is kept, as of
quorate data why.

Examples:
  quorate topics why prices
  quorate topics why prices -node http://10.0.0.7:8080
  quorate --json topics why prices | jq '.subscribers[].dropped'`
}

// list asks for names, and returns the raw answer too.
func (l *listing) list(path string, into any) (json.RawMessage, error) {
	query := url.Values{"limit": {strconv.Itoa(l.Limit)}}
	if l.Prefix != "" {
		query.Set("prefix", l.Prefix)
	}
	return l.get(path, query, into)
}

// printNames writes names, a line each, and whether there are more.
func printNames(s *Session, names []string, more bool) {
	for _, name := range names {
		fmt.Fprintln(s.Stdout, printable(name))
	}
	if more {
		fmt.Fprintln(s.Stderr, "There are more names: see -limit.")
	}
}

// Run asks the node, and prints the answer.
func (c *NamesOfServices) Run(s *Session) error {
	var got cluster.ServiceNames
	raw, err := c.list("/v1/registry", &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	printNames(s, got.Names, got.More)
	return nil
}

// Run asks the node, and prints the answer.
func (c *FindService) Run(s *Session) error {
	var got registry.Explanation
	if _, err := c.get("/v1/registry/explain", url.Values{"name": {c.Name}}, &got); err != nil {
		return err
	}
	got.Entries = slices.DeleteFunc(got.Entries, func(e registry.ExplainedEntry) bool { return e.Hidden != "" })
	if s.JSON {
		if err := s.PrintJSON(got); err != nil {
			return err
		}
	} else {
		for _, e := range got.Entries {
			fmt.Fprintln(s.Stdout, printable(e.Address))
		}
	}
	if len(got.Entries) == 0 {
		return fmt.Errorf("no service is found under %q on %s", c.Name, got.Data.Self)
	}
	return nil
}

// Run asks the node, and prints the answer.
func (c *WhyService) Run(s *Session) error {
	var got registry.Explanation
	raw, err := c.get("/v1/registry/explain", url.Values{"name": {c.Name}}, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	w := s.Stdout
	field(w, "name", got.Name)
	field(w, "asked", got.Data.Self)
	field(w, "subscribers", strconv.Itoa(got.Subscribers))
	if got.Malformed > 0 {
		field(w, "malformed", plural(got.Malformed, "entry"))
	}
	for _, e := range got.Entries {
		fmt.Fprintln(w)
		field(w, "address", e.Address)
		field(w, "node", e.Node)
		field(w, "number", fmt.Sprintf("%d, version %d", e.ID, e.Version))
		for _, key := range slices.Sorted(maps.Keys(e.Metadata)) {
			field(w, "metadata", key+": "+e.Metadata[key])
		}
		field(w, "not found", e.Hidden)
	}
	fmt.Fprintln(w)
	printData(s, got.Data)
	return nil
}

// Run asks the node, and prints the answer.
func (c *NamesOfTopics) Run(s *Session) error {
	var got cluster.TopicNames
	raw, err := c.list("/v1/topics", &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	printNames(s, got.Topics, got.More)
	return nil
}

// Run asks the node, and prints the answer.
func (c *WhyTopic) Run(s *Session) error {
	var got pubsub.Explanation
	raw, err := c.get("/v1/topics/explain", url.Values{"topic": {c.Topic}}, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	w := s.Stdout
	field(w, "topic", got.Topic)
	field(w, "asked", got.Data.Self)
	field(w, "sent to", strings.Join(got.Nodes, ", "))
	for _, group := range slices.Sorted(maps.Keys(got.Groups)) {
		field(w, "group", group+": one of "+strings.Join(got.Groups[group], ", "))
	}
	field(w, "gets nothing", strings.Join(got.Absent, ", "))
	for _, of := range got.Subscribers {
		field(w, "subscriber", subscriberText(of))
	}
	fmt.Fprintln(w)
	printData(s, got.Data)
	return nil
}

// subscriberText says in a line what is known of a subscriber.
func subscriberText(of pubsub.ExplainedSubscriber) string {
	text := fmt.Sprintf("%s, %d of %d wait", of.Policy, of.Waiting, of.Room)
	if of.Group != "" {
		text = "in the group " + of.Group + ", " + text
	}
	if of.Dropped > 0 {
		text += fmt.Sprintf(", %d dropped", of.Dropped)
	}
	return text
}

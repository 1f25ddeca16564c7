// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/quorate/quorate/cluster"
)

// The commands about the plugins of a running node: list asks, swap and restart have the node do
// something, and print what came of it.

// ListPlugins is the command that asks a node for its plugins.
type ListPlugins struct {
	RemoteFlags
}

// SwapPlugin is the command that has a node take over one plugin from its files.
type SwapPlugin struct {
	pluginOperation
}

// RestartPlugin is the command that has a node replace the process of a plugin.
type RestartPlugin struct {
	pluginOperation
}

// pluginOperation are the flags of commands that change something about a plugin.
type pluginOperation struct {
	Name string `arg:"" help:"The name of the plugin in the files of the node."`

	RemoteFlags
}

// operationWait is how long a command waits for a node at least, which starts a process first
// and waits for the calls of another: longer than the 90 s after which the node says that it was
// not done in time.
const operationWait = 100 * time.Second

// Help is the text after the one-line help.
func (*ListPlugins) Help() string {
	return `Prints the plugins that the node asked runs, each with its state, what it says of
itself, its process and checksum, and what has gone wrong with it.

Examples:
  quorate plugin list
  quorate plugin list -node http://10.0.0.7:8080
  quorate --json plugin list | jq -r '.plugins[] | select(.state != "running").name'`
}

// operators says in help texts who may use a command.
const operators = `
Only an operator may ask for it: over the Unix socket of the node, with a token, or
with a certificate; see management.operators. What was asked for, by whom and with
which outcome is among the decisions of the node. The exit status is 1 when the node
refuses, which then goes on with the plugin that it has, or does not answer.
`

// Help is the text after the one-line help.
func (*SwapPlugin) Help() string {
	return `Has the node read its files again, and take over the section plugins.<name>: another
executable, with its checksum, or other settings. The new process is started and
checked before the old one is told to stop, and no question goes without an answer.
Whatever else has changed in the files waits for a reload. Nothing can be run that
the files do not name.

A plugin that decides about downing is loaded, and the cluster changes to it when all
members have it: ask each node. quorate decisions -topic downing says what is missing.
` + operators + `
Examples:
  quorate plugin swap zones -node unix:///run/bank/operators
  quorate plugin swap zones -token-file ~/.quorate-token
  quorate plugin swap zones -node https://10.0.0.7:8080 -certificate me.pem \
      -key me-key.pem -authorities ca.pem
  quorate --json plugin swap zones | jq .changed`
}

// Help is the text after the one-line help.
func (*RestartPlugin) Help() string {
	return `Has the node start another process of a plugin, with the configuration that it has,
and stop the old one when the new one is ready: no question goes without an answer.
` + operators + `
Examples:
  quorate plugin restart zones -node unix:///run/bank/operators
  quorate plugin restart zones -token-file ~/.quorate-token
  quorate --json plugin restart zones | jq .plugins[].pid`
}

// pluginList is the answer about the plugins of a node.
type pluginList struct {
	Plugins []cluster.PluginStatus `json:"plugins"`
}

// Run asks the node, and prints the answer.
func (c *ListPlugins) Run(s *Session) error {
	var got pluginList
	raw, err := c.get("/v1/plugins", nil, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	if len(got.Plugins) == 0 {
		fmt.Fprintln(s.Stdout, "The node runs no plugin.")
	}
	for i, p := range got.Plugins {
		if i > 0 {
			fmt.Fprintln(s.Stdout)
		}
		printPlugin(s, p)
	}
	return nil
}

// printPlugin writes what is known of a plugin.
func printPlugin(s *Session, p cluster.PluginStatus) {
	w := s.Stdout
	field(w, "name", p.Name)
	field(w, "policy", p.Policy)
	field(w, "state", p.State+" since "+p.Since.UTC().Format(time.RFC3339))
	field(w, "says", p.Says)
	if p.PID > 0 {
		debug := ""
		if p.Debug {
			debug = ", which may be debugged: it is not killed when it does not answer"
		}
		field(w, "process", strconv.Itoa(p.PID)+debug)
	}
	field(w, "sha256", p.SHA256)
	field(w, "calls", fmt.Sprintf("%d, of them %d without an answer, %d too late", p.Calls, p.Failures, p.Late))
	if c := p.LastCall; c != nil {
		field(w, "last call", fmt.Sprintf("%s at %s, %s after %.2f ms", c.Call, c.At.UTC().Format(time.RFC3339), cmp.Or(c.Error, "answered"), 1e3*c.Seconds))
	}
	field(w, "replaced", fmt.Sprintf("%s, %s", plural(int(p.Restarts), "restart"), plural(int(p.Swaps), "swap")))
	if p.AwayTotal > 0 {
		field(w, "away", fmt.Sprintf("%.1f s in all, %.1f s the last time", p.AwayTotal, p.AwayLast))
	}
	if p.OutputLeftOut > 0 {
		field(w, "output", plural(int(min(p.OutputLeftOut, 1<<62)), "byte")+" not logged")
	}
	if p.FailedInARow > 0 {
		field(w, "failed", plural(p.FailedInARow, "time")+" in a row")
	}
	field(w, "last error", p.LastError)
}

// Run has the node swap the plugin, and prints what came of it.
func (c *SwapPlugin) Run(s *Session) error {
	return c.operatePlugin(s, "swap", cluster.SwapPluginOperation, "swapped", "its files have it as it runs: nothing was done")
}

// Run has the node restart the plugin, and prints what came of it.
func (c *RestartPlugin) Run(s *Session) error {
	return c.operatePlugin(s, "restart", cluster.RestartPluginOperation, "restarted", "nothing was done")
}

// operatePlugin asks for an operation.
func (c *pluginOperation) operatePlugin(s *Session, verb, operation, done, idle string) error {
	c.Timeout = max(c.Timeout, operationWait)
	var got cluster.PluginChange
	raw, err := c.operate("/v1/plugins/"+url.PathEscape(c.Name)+"/"+verb, operation, &got)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.PrintJSON(raw)
	}
	text := map[bool]string{true: done, false: idle}[got.Changed]
	if got.Changed && len(got.Plugins) > 1 {
		text = "loaded; the cluster changes to it when all members have it"
	}
	field(s.Stdout, "asked", got.Self)
	field(s.Stdout, "outcome", text)
	for _, p := range got.Plugins {
		fmt.Fprintln(s.Stdout)
		printPlugin(s, p)
	}
	return nil
}

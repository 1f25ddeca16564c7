// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/plugins"
)

// An operator has one plugin swapped ([Node.SwapPlugin]) or its process replaced
// ([Node.RestartPlugin]), from code or by the routes at the end. What runs is what the files of
// the node say, which are guarded better than its HTTP interface: no request names an executable.

// ErrNoPlugin is wrapped by the error of a command about a plugin that the node does not run.
var ErrNoPlugin = errors.New("cluster: the node runs no such plugin")

// Plugins returns the status of each plugin of the node, sorted by name.
func (n *Node) Plugins() []PluginStatus {
	all := n.plugins.all()
	list := make([]PluginStatus, len(all))
	for i, p := range all {
		list[i] = pluginStatus(p.Status())
	}
	return list
}

// SwapPlugin takes over the section of one plugin as the files have it at this time, and
// nothing else of what has changed in them. The files as a whole must be valid. It reports
// false if the section is the one that runs; a plugin that is not pinned is renewed even then,
// since its executable may be another. For a plugin that decides about downing it returns when the
// plugin is loaded: the cluster changes to it when all members have it. Policy and class stay the
// same. After an error nothing has changed. It is [ErrNoFiles] for a node that was configured in
// code, and wraps [ErrNoPlugin] if the node does not run the plugin.
func (n *Node) SwapPlugin(ctx context.Context, name string) (changed bool, err error) {
	err = n.operate(ctx, func(ctx context.Context) error {
		changed, err = n.reloader.swapPlugin(ctx, name)
		return err
	})
	return changed && err == nil, err
}

// RestartPlugin replaces the process of a plugin by another of the same configuration: the new
// one is started and checked first, and no call goes without an answer. It returns when the old
// process has ended. After an error the old process goes on.
func (n *Node) RestartPlugin(ctx context.Context, name string) error {
	return n.operate(ctx, func(ctx context.Context) error { return n.reloader.restartPlugin(ctx, name) })
}

// swapPlugin takes the section of a plugin over. Its caller has the turn.
func (r *reloader) swapPlugin(ctx context.Context, name string) (changed bool, err error) {
	if r.file == nil {
		return false, ErrNoFiles
	}
	if err := r.runs(name); err != nil {
		return false, err
	}
	file, err := r.file.Reload()
	if err != nil {
		return false, err
	}
	read, err := r.options.finish(file)
	if err != nil {
		return false, err
	}
	section, ok := read.Plugins[name]
	if !ok {
		return false, fmt.Errorf("%w as %q in the files any more: put plugins.%s back, or reload", ErrNoPlugin, name, name)
	}
	to := r.running
	to.Plugins = maps.Clone(to.Plugins)
	to.Plugins[name] = section
	if err := to.validatePlugins(); err != nil {
		return false, err
	}
	switch {
	case !reflect.DeepEqual(r.running.Plugins[name], section):
		err = r.commit(ctx, to)
	case !section.Unpinned:
		return false, nil
	default:
		err = r.node.plugins.renew(ctx, r.node, to, name)
	}
	if err == nil {
		r.running = to
	}
	return err == nil, err
}

// runs returns an error unless the configuration chooses the plugin for something.
func (r *reloader) runs(name string) error {
	if r.running.chooses(name) {
		return nil
	}
	return fmt.Errorf("%w as %q: see /v1/plugins for those that it runs", ErrNoPlugin, name)
}

// restartPlugin replaces the process of a plugin. Its caller has the turn.
func (r *reloader) restartPlugin(ctx context.Context, name string) error {
	if err := r.runs(name); err != nil {
		return err
	}
	section := r.running.Plugins[name]
	if section.Policy == plugins.Downing && section.Unpinned {
		return fmt.Errorf("cluster: the plugin %q decides about downing and is not pinned: its executable may decide by another rule than those of other nodes; swap it, so that all change together", name)
	}
	var found []Plugin
	for _, p := range r.node.plugins.all() {
		if p.Status().Name == name {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return fmt.Errorf("cluster: the plugin %q has %d processes, while the cluster goes over from one to another: wait for the end of that", name, len(found))
	}
	return found[0].Swap(ctx, section)
}

// renew starts another process of a plugin whose executable may have changed.
func (s *strategies) renew(ctx context.Context, n *Node, to configuration, name string) error {
	if plugin := s.plugin(name); plugin != nil {
		return plugin.Swap(ctx, to.Plugins[name])
	}
	p, err := offerDowning(ctx, n, to)
	if err == nil {
		p.Commit()
	}
	return err
}

// The operations of the routes about plugins, for [management.OperatorHeader].
const (
	SwapPluginOperation    = "swap-plugin"
	RestartPluginOperation = "restart-plugin"
)

// operationTimeout bounds an answer: the longest start-timeout, the calls and the end of the old
// process, and what a busy machine adds.
const operationTimeout = 90 * time.Second

// PluginChange is the answer to a command about a plugin.
type PluginChange struct {
	Self    string `json:"self"`    // The node that was asked.
	Plugin  string `json:"plugin"`  // Its plugin.
	Changed bool   `json:"changed"` // False if there was nothing to do.

	// Plugins are the processes of that name after it: two while the cluster goes over from
	// one plugin for downing to another.
	Plugins []PluginStatus `json:"plugins"`
}

// pluginList is the answer about the plugins of a node.
type pluginList struct {
	Plugins []PluginStatus `json:"plugins"`
}

// pluginRoutes returns the routes of the plugins.
func (n *Node) pluginRoutes() []management.Route {
	operation := func(verb, summary, operation string, do func(ctx context.Context, name string) (bool, error)) management.Route {
		return management.Route{
			Path: "/v1/plugins/{plugin}/" + verb, Summary: summary, Result: PluginChange{}, Operation: operation, Authorized: true, Limit: operationTimeout,
			Answer: func(ctx context.Context, r management.Request) (any, error) {
				name := r.Path("plugin")
				changed, err := do(ctx, name)
				if err != nil {
					return nil, pluginError(err)
				}
				answer := PluginChange{Self: n.Self().String(), Plugin: name, Changed: changed, Plugins: []PluginStatus{}}
				for _, p := range n.Plugins() {
					if p.Name == name {
						answer.Plugins = append(answer.Plugins, p)
					}
				}
				return answer, nil
			},
		}
	}
	return []management.Route{
		{Path: "/v1/plugins", Summary: "The plugins of the node", Result: pluginList{}, Answer: func(context.Context, management.Request) (any, error) {
			return pluginList{n.Plugins()}, nil
		}},
		operation("swap", "Take over one plugin as the files have it", SwapPluginOperation, n.SwapPlugin),
		operation("restart", "Replace the process of one plugin", RestartPluginOperation, func(ctx context.Context, name string) (bool, error) {
			err := n.RestartPlugin(ctx, name)
			return err == nil, err
		}),
	}
}

// pluginError gives an error of a command about a plugin its status.
func pluginError(err error) error {
	if errors.Is(err, ErrNoPlugin) {
		return &management.Error{Status: http.StatusNotFound, Text: strings.TrimPrefix(err.Error(), "cluster: ")}
	}
	return refusedByFiles(err)
}

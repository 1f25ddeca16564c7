// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"fmt"
	"net/http"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// First what a check answers, then the routes, then what they ask a node for.

// HealthStatus is the answer to a health check that succeeds. A check that fails is
// answered by a [Failure] with the reasons, and status 503.
type HealthStatus struct {
	Status string `json:"status"` // "live", "ready" or "started".

	// Warnings are faults that an operator should mend although the node is ready.
	Warnings []string `json:"warnings,omitempty"`
}

// Check returns further reasons why a node cannot serve, each a sentence; none if it can.
// It must return at once. A delay that may depend on other nodes, which may wait for this
// one, is no reason.
type Check func() []string

// Ready returns the reasons why a node cannot serve, each a sentence: those of its membership,
// and those of the checks; none if it can.
func Ready(node *membership.Node, checks ...Check) []string {
	if ended, why := end(node); ended {
		return []string{why}
	}
	reasons := outside(node)
	for _, check := range checks {
		reasons = append(reasons, check()...)
	}
	return reasons
}

// Health returns the routes of health checks. /health/live succeeds until the node has
// ended, after which its process is of no more use. /health/ready succeeds while the node
// takes part in its cluster, that is while it is up and has standing, and no check
// returns a reason. A node that is not ready may become so by itself: it should get no
// traffic, and must not be restarted for that. /health/startup succeeds once the node has been
// up. Warns, nil for none, returns faults that an operator should know of although the node is ready. The paths
// /alive, /ready and /startup are the same, for probes that ask for those.
func Health(node *membership.Node, warns Check, checks ...Check) []Route {
	live := func(context.Context, Request) (any, error) {
		if ended, why := end(node); ended {
			return nil, unhealthy("not live", why)
		}
		return HealthStatus{Status: "live"}, nil
	}
	ready := func(context.Context, Request) (any, error) {
		if reasons := Ready(node, checks...); len(reasons) > 0 {
			return nil, unhealthy("not ready", reasons...)
		}
		return HealthStatus{Status: "ready", Warnings: warnings(node, warns)}, nil
	}
	startup := func(context.Context, Request) (any, error) {
		if self := node.View().Member(); self == nil || self.Status < gossip.Up {
			return nil, unhealthy("not started", Ready(node)...)
		}
		return HealthStatus{Status: "started"}, nil
	}
	var routes []Route
	for _, probe := range []struct {
		paths  []string
		answer func(context.Context, Request) (any, error)
		about  string
	}{
		{[]string{"/health/live", "/alive"}, live, "Whether the node runs"},
		{[]string{"/health/ready", "/ready"}, ready, "Whether the node can serve, and why not"},
		{[]string{"/health/startup", "/startup"}, startup, "Whether the node has been up"},
	} {
		for _, path := range probe.paths {
			routes = append(routes, Route{Path: path, Summary: probe.about, Result: HealthStatus{}, Probe: true, Answer: probe.answer})
		}
	}
	return routes
}

// HealthHandler answers the health checks of [Health] on a server of the program's own,
// whoever asks.
func HealthHandler(node *membership.Node, warns Check, checks ...Check) http.Handler {
	s, err := newServer(Default(), Health(node, warns, checks...), nil)
	if err != nil {
		return http.NotFoundHandler() // The paths above make sense; a test asks for each.
	}
	s.open = true
	return http.HandlerFunc(s.serve)
}

// unhealthy is the answer to a check that fails.
func unhealthy(what string, reasons ...string) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Text: what, Reasons: reasons}
}

// end reports whether the node has ended, and why.
func end(node *membership.Node) (ended bool, why string) {
	select {
	case <-node.Done():
	default:
		return false, ""
	}
	if err := node.Err(); err != nil {
		return true, "the node has ended: " + err.Error()
	}
	return true, "the node has left the cluster"
}

// warnings returns faults that an operator should mend, or know of.
func warnings(node *membership.Node, warns Check) (all []string) {
	if node.RecordLost() {
		all = append(all, "the record in node.data-dir could not be written and was removed: after a restart this node has no vote in who starts the cluster again")
	}
	for _, s := range node.Strangers() {
		all = append(all, s.Reason)
	}
	if warns != nil {
		all = append(all, warns()...)
	}
	return all
}

// outside returns the reasons why a node is in no cluster that goes on; none if it is in
// one.
func outside(node *membership.Node) []string {
	view := node.View()
	if to := view.State.Yielded(); !to.IsZero() {
		return []string{fmt.Sprintf("the node's cluster has yielded to cluster %v of the same name, which goes on: the node hosts nothing, ends shortly, and joins that when it is started again", to.To)}
	}
	if w := node.Waiting(); w != nil && view.Member() == nil {
		return []string{"the node waits for a cluster: " + w.Reason}
	}
	return unready(view.Member(), node.Standing().Held())
}

// unready returns the reasons why a node cannot take part; none if it can.
func unready(self *gossip.Member, standing bool) []string {
	switch {
	case self == nil:
		return []string{"the node has not joined a cluster yet"}
	case self.Status < gossip.Up || self.Status > gossip.Ready:
		return []string{fmt.Sprintf("the node is %s, not up", self.Status)}
	case !standing:
		return []string{"the node has no standing: too few voters have answered its heartbeats lately, so its entities are suspended"}
	}
	return nil
}

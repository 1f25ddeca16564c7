// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// policies returns the policies of the contract by their names in a configuration.
func policies() map[string]pluginv1.Policy {
	return map[string]pluginv1.Policy{
		string(plugins.Downing):         pluginv1.Policy_POLICY_DOWNING,
		string(plugins.Allocation):      pluginv1.Policy_POLICY_ALLOCATION,
		string(plugins.FailureDetector): pluginv1.Policy_POLICY_FAILURE_DETECTOR,
		string(plugins.JoinDecider):     pluginv1.Policy_POLICY_JOIN_DECIDER,
		string(plugins.Discovery):       pluginv1.Policy_POLICY_DISCOVERY,
	}
}

// huge returns a text of 64 MiB.
func huge() string { return strings.Repeat("r", 64<<20) }

// Judge agrees with every verdict in force. In the mode flaps it turns that of each node in
// each batch, and in the mode accuses that of each that is believed alive, which the contract
// permits; in the mode denies it says that it keeps the nodes, and does not.
func (s *strategy) Judge(ctx context.Context, r *pluginv1.JudgeRequest) (*pluginv1.JudgeResponse, error) {
	if err := s.call(ctx); err != nil {
		return nil, err
	}
	res := &pluginv1.JudgeResponse{Number: r.GetNumber()}
	turn := func(place uint32) {
		res.Node, res.Reason, res.Reasons = append(res.Node, place), append(res.Reason, 0), []string{"a whim"}
	}
	switch s.mode {
	case "flaps":
		for place := range r.GetNode() {
			turn(uint32(place))
		}
	case "accuses":
		for place, available := range r.GetAvailable() {
			if available {
				turn(uint32(place))
			}
		}
	case "denies":
		if r.GetNodesNumber() != 0 && len(r.GetNode()) == 0 {
			return nil, status.Error(codes.FailedPrecondition, "which nodes?")
		}
		res.Kept = r.GetNodesNumber()
	case "unknown":
		turn(4_000_000_000)
	case "unasked": // The place behind the last.
		turn(uint32(len(r.GetNode())))
	case "double":
		turn(0)
		turn(0)
	case "columns":
		turn(0)
		res.Reason = nil
	case "number":
		res.Number++
	case "huge":
		turn(0)
		res.Reasons = []string{huge()}
	}
	return res, nil
}

// Lookup finds one contact point.
func (s *strategy) Lookup(ctx context.Context, _ *pluginv1.LookupRequest) (*pluginv1.LookupResponse, error) {
	if err := s.call(ctx); err != nil {
		return nil, err
	}
	count := 1
	switch s.mode {
	case "10000":
		count = 10_000
	case "10001":
		count = 10_001
	}
	res := &pluginv1.LookupResponse{}
	for i := range count {
		res.Host, res.Port, res.Ip = append(res.Host, fmt.Sprintf("host-%d.example", i)), append(res.Port, 7946), append(res.Ip, nil)
	}
	switch s.mode {
	case "double":
		res.Host, res.Port, res.Ip = append(res.Host, res.Host[0]), append(res.Port, 7946), append(res.Ip, nil)
	case "columns":
		res.Port = nil
	case "port":
		res.Port[0] = 1 << 16
	case "ip":
		res.Ip[0] = []byte{1, 2, 3}
	case "ttl":
		res.TtlNanos = -1
	case "host":
		res.Host[0] = "not a host:7"
	case "huge":
		res.Reason = huge()
	}
	return res, nil
}

// joinDecider has the method Decide of its policy, where strategy has that of downing.
type joinDecider struct {
	pluginv1.UnimplementedJoinDeciderServer
	*strategy
}

// Decide has the node wait.
func (j joinDecider) Decide(ctx context.Context, _ *pluginv1.JoinDeciderDecideRequest) (*pluginv1.JoinDeciderDecideResponse, error) {
	if err := j.call(ctx); err != nil {
		return nil, err
	}
	res := &pluginv1.JoinDeciderDecideResponse{Action: pluginv1.JoinAction_JOIN_ACTION_NONE}
	switch j.mode {
	case "form":
		res.Action = pluginv1.JoinAction_JOIN_ACTION_FORM
	case "action":
		res.Action = 99
	case "unknown":
		res.Action, res.SeedNode = pluginv1.JoinAction_JOIN_ACTION_JOIN, []uint32{4_000_000_000}
	case "nobody":
		res.Action = pluginv1.JoinAction_JOIN_ACTION_JOIN
	case "huge":
		res.Reason = huge()
	}
	return res, nil
}

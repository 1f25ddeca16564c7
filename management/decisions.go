// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/membership"
)

const (
	// decisionsDefault is how many decisions are listed when no limit is given,
	// maxDecisions the highest limit.
	decisionsDefault = 100
	maxDecisions     = 10000
)

// DecisionList is the list of the last decisions that a node took itself. Other nodes
// took other decisions: ask the leader about removals, and the coordinator about moves.
type DecisionList struct {
	Self      string     `json:"self"`    // The node that answers.
	Omitted   int        `json:"omitted"` // Number of older decisions that are not listed.
	Decisions []Decision `json:"decisions"`
}

// Decision is one decision, with its reason.
type Decision struct {
	At        time.Time `json:"at"`
	Component string    `json:"component"` // Who decided: "membership", "sharding".
	Topic     string    `json:"topic"`     // What the decision is about in general: "downing", "allocation", ...
	Subject   string    `json:"subject"`   // What was decided about.
	Verdict   string    `json:"verdict"`   // What was decided.
	Reason    string    `json:"reason"`    // Why.
}

// Decisions returns the route of the decisions, /v1/decisions. Its parameters select:
// component and topic by the whole word, subject by any part of it, and limit, 1 to
// 10,000 and 100 by default, that many of the last.
func Decisions(node *membership.Node) []Route {
	return []Route{{
		Path: "/v1/decisions", Summary: "The last decisions of the node, and why", Result: DecisionList{}, Query: []string{"component", "topic", "subject", "limit"},
		Answer: func(_ context.Context, r Request) (any, error) {
			limit, err := r.QueryInt("limit", 1, maxDecisions, decisionsDefault)
			if err != nil {
				return nil, err
			}
			var all []membership.Decision
			for _, topic := range node.Decisions().Topics() {
				if want := r.Query("topic"); want == "" || want == topic {
					all = append(all, node.Decisions().Of(topic)...)
				}
			}
			answer := selectDecisions(all, r.Query("component"), r.Query("subject"), limit)
			answer.Self = node.Self().String()
			return answer, nil
		},
	}}
}

// selectDecisions returns the last decisions that were asked for, oldest first.
func selectDecisions(all []membership.Decision, component, subject string, limit int) DecisionList {
	all = slices.DeleteFunc(all, func(d membership.Decision) bool {
		return component != "" && d.Component != component || !strings.Contains(d.Subject, subject)
	})
	slices.SortStableFunc(all, func(a, b membership.Decision) int { return a.At.Compare(b.At) })
	omitted := max(len(all)-limit, 0)
	list := DecisionList{Omitted: omitted, Decisions: make([]Decision, 0, len(all)-omitted)}
	for _, d := range all[omitted:] {
		list.Decisions = append(list.Decisions, Decision(d))
	}
	return list
}

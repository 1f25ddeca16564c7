// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/management"
)

// ReloadOperation is the operation that has a node read its files again, for
// [management.OperatorHeader].
const ReloadOperation = "reload"

// Reloaded is the answer to a request that a node reads its files again.
type Reloaded struct {
	Self    string   `json:"self"`    // The node that was asked.
	Changed []string `json:"changed"` // The keys of the settings that it has taken over, sorted.
}

// reloadRoutes returns the route by which an operator has the node read its files again, and the one by which it says
// its settings:
//
//	POST /v1/reload     [Reloaded], operation "reload"
//	GET  /v1/settings   [SettingsReport]
func reloadRoutes(n *Node) []management.Route {
	return []management.Route{{
		Path: "/v1/reload", Summary: "Have the node read its files again", Result: Reloaded{}, Operation: ReloadOperation, Authorized: true, Limit: operationTimeout,
		Answer: func(ctx context.Context, _ management.Request) (any, error) {
			answer := Reloaded{Self: n.Self().String()}
			err := n.operate(ctx, func(ctx context.Context) error {
				changed, err := n.reloader.reload(ctx)
				answer.Changed = append([]string{}, changed...)
				return err
			})
			if err != nil {
				return nil, refusedByFiles(err)
			}
			return answer, nil
		},
	}, {
		Path: "/v1/settings", Summary: "The settings of the node, and what its files have otherwise", Result: SettingsReport{}, Limit: operationTimeout,
		Answer: func(ctx context.Context, _ management.Request) (any, error) { return n.reloader.report(ctx) },
	}}
}

// refusedByFiles gives an error of a command that reads the files of a node its status: whatever is not about
// time is refused by the node as it is.
func refusedByFiles(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	e := &management.Error{Status: http.StatusConflict, Text: strings.TrimPrefix(err.Error(), "cluster: ")}
	if faults, ok := errors.AsType[config.Errors](err); ok {
		e.Text = "the files of the node have faults"
		for _, f := range faults {
			e.Reasons = append(e.Reasons, f.Error())
		}
	}
	return e
}

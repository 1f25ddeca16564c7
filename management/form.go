// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"errors"
	"net/http"

	"github.com/quorate/quorate/membership"
)

// FormOperation is the value of [OperatorHeader] in a request to found a cluster.
const FormOperation = "form"

// Formed is the answer to a request to found a cluster that was granted.
type Formed struct {
	Self    string `json:"self"`    // The node that has founded it, its only voter.
	Cluster string `json:"cluster"` // The new cluster.

	// GivenUp are the other voters that the node has waited for: what they remember and
	// the node does not is lost.
	GivenUp []string `json:"givenUp"`
}

// Form returns the route by which an operator lets a waiting node found a cluster,
// /v1/form. It is refused with status 409 and the reason while a member of a cluster that
// goes on answers, or when the node does not wait; with 403 unless it is allowed. Where there are
// operators, only they may ask for it.
func Form(node *membership.Node, allowed bool, operators OperatorsConfig) []Route {
	return []Route{{Path: "/v1/form", Summary: "Have a waiting node found a cluster", Result: Formed{}, Operation: FormOperation, Authorized: operators.any(), Answer: func(ctx context.Context, _ Request) (any, error) {
		if !allowed {
			return nil, refuse(http.StatusForbidden, "management.allow-form is false on this node")
		}
		answer := Formed{Self: node.Self().String(), GivenUp: []string{}}
		if w := node.Waiting(); w != nil {
			for _, v := range w.Voters {
				if v.Node.Address != node.Self().Address {
					answer.GivenUp = append(answer.GivenUp, voter(v))
				}
			}
		}
		cluster, err := node.Form(ctx)
		if errors.Is(err, membership.ErrFormRefused) || errors.Is(err, membership.ErrClosed) {
			return nil, refuse(http.StatusConflict, "%v", err)
		}
		answer.Cluster = cluster.String()
		return answer, err
	}}}
}

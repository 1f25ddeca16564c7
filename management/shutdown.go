// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// ShutdownOperation is the operation by which a whole cluster prepares to be stopped, for
// [OperatorHeader].
const ShutdownOperation = "shutdown-cluster"

// ClusterShutdown is the answer to a request that the whole cluster prepares to be stopped.
type ClusterShutdown struct {
	Self string `json:"self"` // The node that was asked.
	// Status is how far that is: "preparing", or "ready" when one leave ends all members.
	Status  string   `json:"status"`
	Members []string `json:"members"` // All that end.
	Costs   []string `json:"costs"`   // What that costs, each a sentence.
}

// shutdown has the whole cluster prepare to be stopped.
func (o operations) shutdown(ctx context.Context, r Request) (any, error) {
	if err := o.takesPart(r); err != nil {
		return nil, err
	}
	force, err := forced(r)
	if err != nil {
		return nil, err
	}
	view := o.node.View()
	if m := view.Member(); m.Status < gossip.Up || m.Status > gossip.Ready {
		return nil, refuse(http.StatusConflict, "%v is %v: ask a member that is up", m.Node, m.Status)
	}
	answer := ClusterShutdown{Self: view.Self.String(), Status: gossip.Preparing.String(), Costs: shutdownCosts(view)}
	for _, m := range view.State.Members() {
		answer.Members = append(answer.Members, m.Node.String())
	}
	switch begun := view.State.Shutdown(); {
	case begun != gossip.StatusNone: // Asked before.
		answer.Status = begun.String()
		return answer, nil
	case !force:
		return nil, &Error{Status: http.StatusConflict, Text: "nothing was done, since this cannot be taken back: say force if it is meant", Reasons: answer.Costs}
	}
	return answer, o.commanded(o.node.PrepareShutdown(ctx))
}

// shutdownCosts says what it costs that a whole cluster is stopped.
func shutdownCosts(view membership.View) []string {
	voters := len(view.State.Config().Voters)
	return []string{
		"nobody can join any more, members that are not up yet leave, and when one member leaves all do",
		fmt.Sprintf("then nothing is served until %d of the %d voters are started again with their data", voters/2+1, voters),
	}
}

// forced reports whether a request says that it is meant although it costs much.
func forced(r Request) (bool, error) {
	text := r.Query("force")
	if text == "" {
		return false, nil
	}
	force, err := strconv.ParseBool(text)
	if err != nil {
		return false, refuse(http.StatusBadRequest, "force: %q is neither true nor false", clip(text))
	}
	return force, nil
}

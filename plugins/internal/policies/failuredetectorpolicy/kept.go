// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package failuredetectorpolicy

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc/codes"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/plugins/internal/server"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// The ids of nodes are five sixths of a batch, and are usually those of the batch before. A
// plugin keeps the last list that it was sent under its number ([keeper]). The host leaves the
// ids out as long as they are those that the plugin says it has ([acknowledged]).

// acknowledged are the nodes of a batch that the plugin has kept. It never changes.
type acknowledged struct {
	number uint64
	ids    []string
}

// request is a request, and what is acknowledged when the plugin answers that it has kept the
// nodes.
type request struct {
	*pluginv1.JudgeRequest
	keeps *acknowledged
}

// newRequest returns the request for a batch, without the nodes if they are those that the
// plugin has: nil if it has none. The first batch of a session always has them: it is what a
// host sends to a plugin of which it knows nothing.
func newRequest(b *fd.Batch, has *acknowledged) (request, error) {
	if b.Number > 1 && has != nil && slices.EqualFunc(has.ids, b.Subjects, isSubject) {
		if err := validateAnswers(b); err != nil {
			return request{}, err
		}
		r := columnsToProto(b)
		r.NodesNumber = has.number
		return request{r, has}, nil
	}
	r, err := BatchToProto(b)
	if err != nil || len(r.GetNode()) == 0 {
		return request{r, nil}, err
	}
	// No other judge takes the number either, not even one of the same process.
	r.NodesNumber = max(1, rand.Uint64())
	return request{r, &acknowledged{r.GetNodesNumber(), r.GetNode()}}, nil
}

func isSubject(id string, s fd.Subject) bool { return s.ID == id }

// whole reports whether the request has all that it says.
func (r request) whole() bool { return r.GetNodesNumber() == 0 || len(r.GetNode()) > 0 }

// lacks reports whether a call with this code failed because the plugin does not have the
// batches before, or the nodes that the request left out: it is a new process, has kept others
// since, or, where an older program has replaced a newer one, never keeps any and takes the
// request for malformed.
func (r request) lacks(code codes.Code) bool {
	return code == codes.FailedPrecondition || code == codes.InvalidArgument && !r.whole()
}

// keeper keeps the nodes of the last request that had a number for them.
type keeper struct{ last atomic.Pointer[acknowledged] }

// batch returns the batch of a received request, checked, and its nodes with the number under
// which they are kept, 0 if they are not.
func (k *keeper) batch(r *pluginv1.JudgeRequest) (fd.Batch, acknowledged, error) {
	nodes := acknowledged{r.GetNodesNumber(), r.GetNode()}
	if nodes.number != 0 && len(nodes.ids) == 0 {
		last := k.last.Load()
		if last == nil || last.number != nodes.number {
			return fd.Batch{}, acknowledged{}, server.ErrNotKept
		}
		b, err := batchOf(r, last.ids)
		return b, *last, err
	}
	b, err := BatchFromProto(r)
	if err == nil && nodes.number != 0 {
		k.last.Store(&nodes)
	}
	return b, nodes, err
}

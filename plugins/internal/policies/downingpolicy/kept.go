// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downingpolicy

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins/internal/server"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Nodes and members are nine tenths of a request, and are usually those of the request
// before. A plugin keeps the last that it was sent under their number ([keeper]). The host
// leaves them out as long as they are those that the plugin says it has ([acknowledged]).

// acknowledged are the nodes and members of a request that the plugin has kept. It never
// changes.
type acknowledged struct {
	number  uint64
	members []*gossip.Member
	others  map[gossip.NodeID]uint32
}

// request is a request, and what is acknowledged when the plugin answers that it has kept
// the nodes and members.
type request struct {
	*pluginv1.DowningDecideRequest
	keeps *acknowledged
}

// newRequest returns the whole request for a valid view. Its number is one that no other
// provider takes either, not even one of the same process.
func newRequest(v *downing.View) request {
	r, t := whole(v)
	r.MembersNumber = max(1, rand.Uint64())
	return request{r, &acknowledged{r.GetMembersNumber(), slices.Clone(v.Members), t.others}}
}

// request returns the request for a valid view that leaves out the nodes and members, or
// false if they are not those that the plugin has.
func (a *acknowledged) request(v *downing.View) (request, bool) {
	if !slices.EqualFunc(a.members, v.Members, sameMember) {
		return request{}, false
	}
	t := nodeTable{members: v.Members, others: a.others}
	r := situation(v, &t)
	r.MembersNumber = a.number
	return request{r, a}, !t.lacking
}

// sameMember reports whether two members are alike in what the contract says of a member.
func sameMember(a, b *gossip.Member) bool {
	return a == b || a.Node == b.Node && a.Status == b.Status && a.UpNumber == b.UpNumber &&
		a.Zone == b.Zone && a.AppVersion == b.AppVersion && slices.Equal(a.Roles, b.Roles)
}

// lacksMembers reports whether a call failed because the plugin does not have the members
// that the request left out: it is a new process, has kept others since, or, where an older
// program has replaced a newer one, never keeps any and takes the request for malformed.
func lacksMembers(err error) bool {
	code := status.Code(err)
	return code == codes.FailedPrecondition || code == codes.InvalidArgument
}

// keeper keeps the nodes and members of the last request that had a number for them.
type keeper struct{ last atomic.Pointer[kept] }

// kept are nodes and members with their number. It never changes.
type kept struct {
	number uint64
	cast   cast
}

// view returns the view of a received request, and the number under which its nodes and
// members are kept. The view shares no list with what is kept: a strategy that modifies its
// view spoils that one decision alone.
func (k *keeper) view(r *pluginv1.DowningDecideRequest) (downing.View, uint64, error) {
	number := r.GetMembersNumber()
	if number != 0 && r.GetNodes() == nil && r.GetMembers() == nil {
		last := k.last.Load()
		if last == nil || last.number != number {
			return downing.View{}, 0, server.ErrNotKept
		}
		v, err := last.cast.clone().view(r)
		return v, number, err
	}
	c, err := castFromProto(r)
	if err != nil {
		return downing.View{}, 0, err
	}
	v, err := c.view(r)
	if err == nil && number != 0 {
		k.last.Store(&kept{number, c.clone()})
	}
	return v, number, err
}

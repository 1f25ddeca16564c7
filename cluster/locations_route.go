// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/cluster/locations"
	"github.com/quorate/quorate/management"
)

// The routes about where shards should live, by which operators and controllers in other processes steer, and
// what explanations and lists of shards say of it:
//
//	GET  /v1/kinds/{kind}/locations         [LocationList]
//	     /v1/kinds/{kind}/locations/set     [LocationsChanged], operation "set-locations"; body [LocationsRequest]
//	     /v1/kinds/{kind}/locations/clear   [LocationsChanged], operation "clear-locations"

// The operations about locations, for [management.OperatorHeader].
const (
	SetLocationsOperation   = "set-locations"
	ClearLocationsOperation = "clear-locations"
)

const (
	// maxLocationsBytes bounds the body of a request that sets locations: those of 65,536 shards at
	// addresses of 20 bytes take 3.5 MB.
	maxLocationsBytes = 4 << 20
	// locationsTimeout is how long an answer may take that writes to a majority.
	locationsTimeout = 10 * time.Second
)

// Location says where a shard should live.
type Location struct {
	Shard int    `json:"shard"`
	Node  string `json:"node"` // As "host:port". Empty in a request: nowhere in particular.
	// Home is the node at which the shard lives, as the node that answers knows; none if it knows none. Member says that
	// a member has the address of Node. Both are for lists.
	Home   string `json:"home,omitempty"`
	Member bool   `json:"member,omitempty"`
}

// LocationList lists the locations of a kind.
type LocationList struct {
	Self      string     `json:"self"` // The node that answers.
	Kind      string     `json:"kind"`
	Followed  bool       `json:"followed"`  // The allocation strategy of that node follows locations.
	Locations []Location `json:"locations"` // By shard.
}

// LocationsRequest is the body of a request that sets locations.
type LocationsRequest struct {
	Locations []Location `json:"locations"` // Each shard once.
}

// LocationsChanged says that locations have changed.
type LocationsChanged struct {
	Self     string `json:"self"` // The node that answers.
	Kind     string `json:"kind"`
	Shards   int    `json:"shards"`   // How many locations were named; of a clearing, how many there were.
	Followed bool   `json:"followed"` // As in [LocationList].
}

// locationRoutes answers the routes about locations.
type locationRoutes struct{ n *Node }

// all returns the routes.
func (l locationRoutes) all() []management.Route {
	return []management.Route{
		{Path: "/v1/kinds/{kind}/locations", Summary: "Where shards should live", Result: LocationList{}, Answer: l.list},
		{Path: "/v1/kinds/{kind}/locations/set", Summary: "Say where shards should live", Result: LocationsChanged{}, Operation: SetLocationsOperation, Authorized: true, Body: maxLocationsBytes, Limit: locationsTimeout, Answer: l.set},
		{Path: "/v1/kinds/{kind}/locations/clear", Summary: "Withdraw where shards should live", Result: LocationsChanged{}, Operation: ClearLocationsOperation, Authorized: true, Limit: locationsTimeout, Answer: l.clear},
	}
}

func (l locationRoutes) list(ctx context.Context, r management.Request) (any, error) {
	kind := r.Path("kind")
	at, err := l.n.Locations().Get(ctx, kind)
	if err != nil {
		return nil, locationError(err)
	}
	homes := map[int]string{}
	shards, _ := l.n.sharding.Shards(kind) // A kind that does not run here may have locations.
	for _, s := range shards {
		homes[s.Shard] = s.Home
	}
	list := LocationList{Self: l.n.Self().String(), Kind: kind, Followed: l.n.follows.Load(), Locations: make([]Location, 0, len(at))}
	members := l.addresses()
	for _, shard := range slices.Sorted(maps.Keys(at)) {
		list.Locations = append(list.Locations, Location{
			Shard: int(shard), Node: at[shard], Home: homes[int(shard)], Member: members[at[shard]],
		})
	}
	return list, nil
}

func (l locationRoutes) set(ctx context.Context, r management.Request) (any, error) {
	wanted, err := wantedLocations(r.Body())
	if err != nil {
		return nil, &management.Error{Status: http.StatusBadRequest, Text: err.Error()}
	}
	kind := r.Path("kind")
	if err := l.n.Locations().Set(ctx, kind, wanted); err != nil {
		return nil, locationError(err)
	}
	return l.changed(kind, len(wanted)), nil
}

func (l locationRoutes) clear(ctx context.Context, r management.Request) (any, error) {
	kind := r.Path("kind")
	at, err := l.n.Locations().Get(ctx, kind)
	if err == nil && len(at) > 0 {
		err = l.n.Locations().Clear(ctx, kind, slices.Collect(maps.Keys(at))...)
	}
	if err != nil {
		return nil, locationError(err)
	}
	return l.changed(kind, len(at)), nil
}

func (l locationRoutes) changed(kind string, shards int) LocationsChanged {
	return LocationsChanged{Self: l.n.Self().String(), Kind: kind, Shards: shards, Followed: l.n.follows.Load()}
}

// wantedLocations decodes the body of a request. What it does not know it refuses, so that a mistake is not
// taken for a wish.
func wantedLocations(body []byte) (map[allocation.Shard]string, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	var wanted LocationsRequest
	if err := decoder.Decode(&wanted); err != nil {
		return nil, fmt.Errorf(`the body is not {"locations": [{"shard": 7, "node": "10.0.0.7:7946"}]}: %w`, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the body goes on behind its end")
	}
	if len(wanted.Locations) == 0 {
		return nil, errors.New("the body names no location")
	}
	at := make(map[allocation.Shard]string, len(wanted.Locations))
	for _, w := range wanted.Locations {
		shard := allocation.Shard(w.Shard)
		if w.Shard < 0 || int64(shard) != int64(w.Shard) {
			return nil, fmt.Errorf("shard %d: there is no such shard", w.Shard)
		}
		if _, twice := at[shard]; twice {
			return nil, fmt.Errorf("shard %d is named twice", w.Shard)
		}
		at[shard] = w.Node
	}
	return at, nil
}

// locationError gives an error about locations its status.
func locationError(err error) error {
	status := 0
	unconfirmed, unread := (*locations.UnconfirmedError)(nil), (*locations.UnreadError)(nil)
	switch {
	case errors.Is(err, locations.ErrInvalid):
		status = http.StatusBadRequest
	case errors.As(err, &unconfirmed), errors.As(err, &unread):
		status = http.StatusServiceUnavailable
	default:
		return err
	}
	return &management.Error{Status: status, Text: strings.TrimPrefix(strings.TrimPrefix(err.Error(), "locations: "), "invalid: ")}
}

// addresses returns the addresses of the members of the cluster.
func (l locationRoutes) addresses() map[string]bool {
	all := map[string]bool{}
	for _, m := range l.n.member.State().Members() {
		all[m.Node.Address.String()] = true
	}
	return all
}

// livesAt reports whether a node, in its text form, has an address.
func livesAt(home, address string) bool {
	at, _, _ := strings.Cut(home, "#")
	return at == address
}

// misplaced adds to a list of shards those that should live elsewhere.
func (l locationRoutes) misplaced(ctx context.Context, list *ShardList) {
	if !l.n.follows.Load() {
		return
	}
	at, err := l.n.Locations().Known(ctx, list.Kind)
	if err != nil {
		list.LocationsUnread = err.Error()
		return
	}
	for _, s := range list.Shards {
		if address := at[allocation.Shard(s.Shard)]; address != "" && !livesAt(s.Home, address) {
			if list.Locations == nil {
				list.Locations = map[int]string{}
			}
			list.Locations[s.Shard] = address
		}
	}
}

// explain adds to an explanation where the shard should live, if that is elsewhere.
func (l locationRoutes) explain(ctx context.Context, x management.Explanation, err error) (management.Explanation, error) {
	if err != nil || !l.n.follows.Load() {
		return x, err
	}
	address, err := l.n.Locations().Location(ctx, x.Kind, allocation.Shard(x.Shard))
	switch {
	case err != nil:
		x.Pending = append(x.Pending, "its location cannot be read: "+err.Error())
	case address == "" || livesAt(x.Home, address):
	case !l.addresses()[address]:
		x.Pending = append(x.Pending, "its location is "+address+", and no member has that address: it moves when one has")
	default:
		x.Pending = append(x.Pending, "its location is "+address+": it moves there when the coordinator next looks, if the node there can host")
	}
	return x, nil
}

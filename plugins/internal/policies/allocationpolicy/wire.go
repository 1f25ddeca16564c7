// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocationpolicy

import (
	"math"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/plugins/internal/wire"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Each message has a function to write it and one to read it: the requests and answers of
// Allocate, then those of Rebalance.

// AllocateToProto returns the message for a request.
func AllocateToProto(r *allocation.AllocateRequest) *pluginv1.AllocateRequest {
	t := newRegionTable(r.Regions)
	p := &pluginv1.AllocateRequest{
		Kind: r.Kind, Regions: regionsToProto(r.Regions), Shard: make([]uint32, len(r.Shards)), Fitness: fitnessToProto(r.Fitness),
	}
	for i, pending := range r.Shards {
		p.Shard[i] = uint32(pending.Shard)
		if pending.Requester == "" {
			continue
		}
		if p.Requester == nil {
			p.Requester = make([]uint32, len(r.Shards))
		}
		p.Requester[i] = t.place(pending.Requester) + 1
	}
	p.Regions.Other = t.others
	return p
}

// AllocateFromProto returns the request of a received message.
// [allocation.AllocateRequest.Validate] checks that no shard occurs twice.
func AllocateFromProto(p *pluginv1.AllocateRequest) (allocation.AllocateRequest, error) {
	regions, ids, err := regionsFromProto(p.GetRegions())
	if err != nil {
		return allocation.AllocateRequest{}, err
	}
	requester := p.GetRequester()
	if len(requester) > 0 {
		if err := wire.SameLength("requester", len(p.GetShard()), len(requester)); err != nil {
			return allocation.AllocateRequest{}, err
		}
	}
	if err := wire.Within("requester", requester, len(ids)+1); err != nil {
		return allocation.AllocateRequest{}, err
	}
	r := allocation.AllocateRequest{
		Kind: p.GetKind(), Regions: regions, Shards: make([]allocation.Pending, len(p.GetShard())), Fitness: fitnessFromProto(p.GetFitness()),
	}
	for i, s := range p.GetShard() {
		r.Shards[i].Shard = allocation.Shard(s)
		if len(requester) > 0 && requester[i] > 0 {
			r.Shards[i].Requester = ids[requester[i]-1]
		}
	}
	return r, nil
}

// AllocateResultToProto returns the message for the answer to a request, or the error of
// [allocation.CheckAllocate].
func AllocateResultToProto(r *allocation.AllocateRequest, res *allocation.AllocateResult) (*pluginv1.AllocateResponse, error) {
	if err := allocation.CheckAllocate(r, res); err != nil {
		return nil, err
	}
	n := len(res.Placements)
	p := &pluginv1.AllocateResponse{Shard: make([]uint32, n), Region: make([]uint32, n), LeftOut: wire.Text(res.Reason)}
	at := places{regions: r.Regions}
	var why reasons
	for i := range res.Placements {
		place := &res.Placements[i]
		region, err := at.of(place.Region)
		if err != nil {
			return nil, err
		}
		p.Shard[i], p.Region[i] = uint32(place.Shard), region
		why.add(place.Reason, i, n)
	}
	p.Reason, p.Reasons = why.column, why.table.List
	return p, nil
}

// AllocateResultFromProto returns the answer in a received message. Only its form is
// checked; [allocation.CheckAllocate] checks that it keeps the contract.
func AllocateResultFromProto(r *allocation.AllocateRequest, p *pluginv1.AllocateResponse) (allocation.AllocateResult, error) {
	n := len(p.GetShard())
	if n > len(r.Shards) {
		return allocation.AllocateResult{}, wire.Malformed("shard", "%d placements for %d shards", n, len(r.Shards))
	}
	if err := wire.SameLength("placements", n, len(p.GetRegion())); err != nil {
		return allocation.AllocateResult{}, err
	}
	if err := wire.Within("region", p.GetRegion(), len(r.Regions)); err != nil {
		return allocation.AllocateResult{}, err
	}
	if err := checkReasons(n, p.GetReason(), p.GetReasons()); err != nil {
		return allocation.AllocateResult{}, err
	}
	res := allocation.AllocateResult{Reason: p.GetLeftOut()}
	if n > 0 {
		res.Placements = make([]allocation.Placement, n)
	}
	for i := range res.Placements {
		res.Placements[i] = allocation.Placement{
			Shard: allocation.Shard(p.GetShard()[i]), Region: r.Regions[p.GetRegion()[i]].ID,
			Reason: reasonAt(i, p.GetReason(), p.GetReasons()),
		}
	}
	return res, nil
}

// RebalanceToProto returns the message for a request. A limit of the budget beyond 32
// bits is replaced by the largest that fits: both are above any number of shards.
func RebalanceToProto(r *allocation.RebalanceRequest) *pluginv1.RebalanceRequest {
	t := newRegionTable(r.Regions)
	n := len(r.Budget.InFlight)
	p := &pluginv1.RebalanceRequest{
		Kind: r.Kind, Regions: regionsToProto(r.Regions), Fitness: fitnessToProto(r.Fitness),
		Budget: &pluginv1.Budget{
			Simultaneous: saturate(r.Budget.Simultaneous), PerRegion: saturate(r.Budget.PerRegion),
			Shard: make([]uint32, n), From: make([]uint32, n), To: make([]uint32, n),
		},
	}
	for i := range r.Budget.InFlight {
		m := &r.Budget.InFlight[i]
		p.Budget.Shard[i], p.Budget.From[i], p.Budget.To[i] = uint32(m.Shard), t.place(m.From), t.place(m.To)
	}
	p.Regions.Other = t.others
	return p
}

// saturate brings a limit into the range of its field.
func saturate(n int) uint32 { return uint32(min(max(int64(n), 0), math.MaxUint32)) }

// RebalanceFromProto returns the request of a received message.
func RebalanceFromProto(p *pluginv1.RebalanceRequest) (allocation.RebalanceRequest, error) {
	regions, ids, err := regionsFromProto(p.GetRegions())
	if err != nil {
		return allocation.RebalanceRequest{}, err
	}
	b := p.GetBudget()
	n := len(b.GetShard())
	if err := wire.SameLength("budget", n, len(b.GetFrom()), len(b.GetTo())); err != nil {
		return allocation.RebalanceRequest{}, err
	}
	for _, column := range [][]uint32{b.GetFrom(), b.GetTo()} {
		if err := wire.Within("budget", column, len(ids)); err != nil {
			return allocation.RebalanceRequest{}, err
		}
	}
	r := allocation.RebalanceRequest{
		Kind: p.GetKind(), Regions: regions, Fitness: fitnessFromProto(p.GetFitness()),
		Budget: allocation.Budget{Simultaneous: limit(b.GetSimultaneous()), PerRegion: limit(b.GetPerRegion())},
	}
	if n > 0 {
		r.Budget.InFlight = make([]allocation.Move, n)
	}
	for i := range r.Budget.InFlight {
		r.Budget.InFlight[i] = allocation.Move{
			Shard: allocation.Shard(b.GetShard()[i]), From: ids[b.GetFrom()[i]], To: ids[b.GetTo()[i]],
		}
	}
	return r, nil
}

// limit returns n as an int, which has 32 bits on some machines.
func limit(n uint32) int { return int(min(int64(n), math.MaxInt)) }

// RebalanceResultToProto returns the message for the answer to a request, or the error of
// [allocation.CheckRebalance].
func RebalanceResultToProto(r *allocation.RebalanceRequest, res *allocation.RebalanceResult) (*pluginv1.RebalanceResponse, error) {
	if err := allocation.CheckRebalance(r, res); err != nil {
		return nil, err
	}
	n := len(res.Moves)
	p := &pluginv1.RebalanceResponse{Shard: make([]uint32, n), From: make([]uint32, n), To: make([]uint32, n), Summary: wire.Text(res.Reason)}
	at := places{regions: r.Regions}
	var why reasons
	for i := range res.Moves {
		m := &res.Moves[i]
		from, err := at.of(m.From)
		if err != nil {
			return nil, err
		}
		to, err := at.of(m.To)
		if err != nil {
			return nil, err
		}
		p.Shard[i], p.From[i], p.To[i] = uint32(m.Shard), from, to
		why.add(m.Reason, i, n)
	}
	p.Reason, p.Reasons = why.column, why.table.List
	return p, nil
}

// RebalanceResultFromProto returns the answer in a received message. Only its form is
// checked; [allocation.CheckRebalance] checks that it keeps the contract.
func RebalanceResultFromProto(r *allocation.RebalanceRequest, p *pluginv1.RebalanceResponse) (allocation.RebalanceResult, error) {
	n := len(p.GetShard())
	if n > r.Budget.Room() {
		return allocation.RebalanceResult{}, wire.Malformed("shard", "%d moves, %d more may begin", n, r.Budget.Room())
	}
	if err := wire.SameLength("moves", n, len(p.GetFrom()), len(p.GetTo())); err != nil {
		return allocation.RebalanceResult{}, err
	}
	for _, column := range [][]uint32{p.GetFrom(), p.GetTo()} {
		if err := wire.Within("moves", column, len(r.Regions)); err != nil {
			return allocation.RebalanceResult{}, err
		}
	}
	if err := checkReasons(n, p.GetReason(), p.GetReasons()); err != nil {
		return allocation.RebalanceResult{}, err
	}
	res := allocation.RebalanceResult{Reason: p.GetSummary()}
	if n > 0 {
		res.Moves = make([]allocation.Move, n)
	}
	for i := range res.Moves {
		res.Moves[i] = allocation.Move{
			Shard: allocation.Shard(p.GetShard()[i]), From: r.Regions[p.GetFrom()[i]].ID, To: r.Regions[p.GetTo()[i]].ID,
			Reason: reasonAt(i, p.GetReason(), p.GetReasons()),
		}
	}
	return res, nil
}

func fitnessToProto(f allocation.Fitness) *pluginv1.Fitness {
	return &pluginv1.Fitness{OneVersion: f.OneVersion, NoneUnreachable: f.NoneUnreachable, NoneJoining: f.NoneJoining}
}

func fitnessFromProto(p *pluginv1.Fitness) allocation.Fitness {
	return allocation.Fitness{OneVersion: p.GetOneVersion(), NoneUnreachable: p.GetNoneUnreachable(), NoneJoining: p.GetNoneJoining()}
}

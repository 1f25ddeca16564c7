// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package failuredetectorpolicy

import (
	"math"
	"time"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/plugins/internal/wire"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// A batch is written as columns of its nodes and one column of all answers; verdicts name nodes
// by their places in the batch, and reasons by their places in a table. Both sides check what
// they write and what they read.

// Limits of a batch, as the contract has them.
const (
	maxNodes   = wire.MaxNodes
	maxIDBytes = 512
	maxAnswers = 1 << 20
)

// BatchToProto returns the request for a batch, with its nodes. The error names what the
// contract does not allow.
func BatchToProto(b *fd.Batch) (*pluginv1.JudgeRequest, error) {
	if err := validate(b); err != nil {
		return nil, err
	}
	r := columnsToProto(b)
	r.Node = make([]string, len(b.Subjects))
	for i := range b.Subjects {
		r.Node[i] = b.Subjects[i].ID
	}
	return r, nil
}

// columnsToProto returns the request for a valid batch without its nodes.
func columnsToProto(b *fd.Batch) *pluginv1.JudgeRequest {
	answers := 0
	for i := range b.Subjects {
		answers += len(b.Subjects[i].Ages)
	}
	r := &pluginv1.JudgeRequest{
		Number: b.Number, ElapsedNanos: int64(b.Elapsed),
		Available: make([]bool, len(b.Subjects)), AnswerCount: make([]uint32, len(b.Subjects)), AgeNanos: make([]int64, 0, answers),
	}
	for i := range b.Subjects {
		s := &b.Subjects[i]
		r.Available[i], r.AnswerCount[i] = s.Available, uint32(len(s.Ages))
		for _, age := range s.Ages {
			r.AgeNanos = append(r.AgeNanos, int64(age))
		}
	}
	return r
}

// validate reports a batch that the contract does not allow.
func validate(b *fd.Batch) error {
	if len(b.Subjects) > maxNodes {
		return wire.Malformed("node", "%d nodes, the limit is %d", len(b.Subjects), maxNodes)
	}
	seen := make(map[string]bool, len(b.Subjects))
	for i := range b.Subjects {
		id := b.Subjects[i].ID
		if id == "" || len(id) > maxIDBytes {
			return wire.Malformed("node", "an id has %d bytes, not 1 to %d", len(id), maxIDBytes)
		}
		if seen[id] {
			return wire.Malformed("node", "%q is there twice", id)
		}
		seen[id] = true
	}
	return validateAnswers(b)
}

// validateAnswers reports what the contract does not allow in a batch whose nodes are valid.
func validateAnswers(b *fd.Batch) error {
	switch {
	case b.Number == 0:
		return wire.Malformed("number", "is 0")
	case b.Elapsed < 0 || b.Number == 1 && b.Elapsed != 0:
		return wire.Malformed("elapsed_nanos", "%d in batch %d", b.Elapsed, b.Number)
	}
	answers := 0
	for i := range b.Subjects {
		s := &b.Subjects[i]
		before := time.Duration(math.MaxInt64)
		for _, age := range s.Ages {
			if age < 0 || age > before {
				return wire.Malformed("age_nanos", "ages of %q are negative or rise", s.ID)
			}
			before = age
		}
		if answers += len(s.Ages); answers > maxAnswers {
			return wire.Malformed("age_nanos", "more than %d answers", maxAnswers)
		}
	}
	return nil
}

// BatchFromProto returns the batch of a received request that has its nodes, checked.
func BatchFromProto(r *pluginv1.JudgeRequest) (fd.Batch, error) {
	if n := len(r.GetNode()); n > maxNodes {
		return fd.Batch{}, wire.Malformed("node", "%d nodes, the limit is %d", n, maxNodes)
	}
	b, err := batchOf(r, r.GetNode())
	if err == nil {
		err = validate(&b)
	}
	if err != nil {
		return fd.Batch{}, err
	}
	return b, nil
}

// batchOf returns the batch of a received request about the nodes, whose ids are valid. All else
// is checked.
func batchOf(r *pluginv1.JudgeRequest, ids []string) (fd.Batch, error) {
	n, ages := len(ids), r.GetAgeNanos()
	if len(ages) > maxAnswers {
		return fd.Batch{}, wire.Malformed("age_nanos", "%d answers, the limit is %d", len(ages), maxAnswers)
	}
	if err := wire.SameLength("node", n, len(r.GetAvailable()), len(r.GetAnswerCount())); err != nil {
		return fd.Batch{}, err
	}
	b := fd.Batch{Number: r.GetNumber(), Elapsed: time.Duration(r.GetElapsedNanos())}
	if n > 0 {
		b.Subjects = make([]fd.Subject, n)
	}
	all := make([]time.Duration, len(ages)) // Of all nodes: one allocation, and each has its part.
	for i, age := range ages {
		all[i] = time.Duration(age)
	}
	for i, id := range ids {
		s := &b.Subjects[i]
		s.ID, s.Available = id, r.GetAvailable()[i]
		count := r.GetAnswerCount()[i]
		if uint64(count) > uint64(len(all)) {
			return fd.Batch{}, wire.Malformed("answer_count", "%q has %d answers, %d are left", id, count, len(all))
		}
		if count > 0 {
			s.Ages = all[:count:count]
		}
		all = all[count:]
	}
	if len(all) > 0 {
		return fd.Batch{}, wire.Malformed("answer_count", "nobody has given the last %d answers", len(all))
	}
	return b, validateAnswers(&b)
}

// VerdictsToProto returns the answer for verdicts about a batch, checked. Reasons are made one
// line, and cut where they are too long.
func VerdictsToProto(b *fd.Batch, v *fd.Verdicts) (*pluginv1.JudgeResponse, error) {
	if err := v.Check(*b); err != nil {
		return nil, wire.Malformed("node", "%v", err)
	}
	p := &pluginv1.JudgeResponse{Number: v.Number}
	if len(v.Changes) == 0 { // As nearly always: nothing has to be found.
		return p, nil
	}
	places := make(map[string]uint32, len(b.Subjects))
	for i, s := range b.Subjects {
		places[s.ID] = uint32(i)
	}
	var reasons wire.Texts
	for _, c := range v.Changes {
		p.Node = append(p.Node, places[c.ID]) // The check has found the node in the batch.
		p.Reason = append(p.Reason, reasons.Add(wire.Line(c.Reason, wire.MaxTextBytes)))
	}
	p.Reasons = reasons.List
	return p, nil
}

// VerdictsFromProto returns the verdicts of a received answer, checked.
func VerdictsFromProto(b *fd.Batch, p *pluginv1.JudgeResponse) (fd.Verdicts, error) {
	n := len(p.GetNode())
	if n > len(b.Subjects) || len(p.GetReasons()) > n {
		return fd.Verdicts{}, wire.Malformed("node", "%d verdicts with %d reasons about %d nodes", n, len(p.GetReasons()), len(b.Subjects))
	}
	if err := wire.SameLength("node", n, len(p.GetReason())); err != nil {
		return fd.Verdicts{}, err
	}
	if err := wire.Within("node", p.GetNode(), len(b.Subjects)); err != nil {
		return fd.Verdicts{}, err
	}
	if err := wire.Within("reason", p.GetReason(), len(p.GetReasons())); err != nil {
		return fd.Verdicts{}, err
	}
	for _, reason := range p.GetReasons() {
		if len(reason) > wire.MaxTextBytes {
			return fd.Verdicts{}, wire.Malformed("reasons", "%d bytes, the limit is %d", len(reason), wire.MaxTextBytes)
		}
	}
	reasons := p.GetReasons()
	for i := range reasons { // Once for each: a line is a copy.
		reasons[i] = wire.Line(reasons[i], wire.MaxTextBytes)
	}
	v := fd.Verdicts{Number: p.GetNumber()}
	for i, place := range p.GetNode() {
		s := b.Subjects[place]
		v.Changes = append(v.Changes, fd.Verdict{ID: s.ID, Available: !s.Available, Reason: reasons[p.GetReason()[i]]})
	}
	if err := v.Check(*b); err != nil {
		return fd.Verdicts{}, wire.Malformed("node", "%v", err)
	}
	return v, nil
}

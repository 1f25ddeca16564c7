// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Detectors in another process: the contract of a judge, with its batches and
// verdicts; the check of an answer; and DetectorJudge, which serves the contract with
// a Detector for each node.

var (
	// ErrOutOfStep is returned by a [Judge] for a batch that is neither the first of a
	// session nor the successor of the batch before: the judge has missed arrivals.
	// The caller begins a new session.
	ErrOutOfStep = errors.New("batch out of step")

	// ErrBadBatch is returned by a [Judge] for a batch that breaks the contract.
	ErrBadBatch = errors.New("malformed batch")

	// ErrBadVerdicts is returned by [Verdicts.Check] for an answer that breaks the
	// contract. None of its verdicts is used.
	ErrBadVerdicts = errors.New("malformed verdicts")
)

// Judge is the batch form of a detector, for a detector that lives in another process:
// arrivals since the last call go in, changes of verdict come out.
//
// One goroutine calls it, one call at a time; a call may block until its context ends.
// Arguments and results belong to their receiver. The caller applies the bounds of
// silence to any answer, keeps a built-in detector that is fed the same arrivals, and
// continues with that detector when a call fails or when its answer does not pass
// [Verdicts.Check]. It calls once in a heartbeat interval, and once more after [ErrOutOfStep].
type Judge interface {
	Judge(ctx context.Context, b Batch) (Verdicts, error)
}

// Batch is the input of a [Judge] in one call. Times are relative to the moment of the
// batch, since two processes have no clock in common.
type Batch struct {
	// Number is 1 for the first batch of a session, which makes the judge forget
	// all nodes, and rises by 1 with each batch.
	Number uint64
	// Elapsed is the time since the moment of the previous batch, at least 0. It is 0
	// for the first.
	Elapsed time.Duration
	// Subjects are all nodes that are monitored and have answered, each once. The
	// judge forgets a node that is absent.
	Subjects []Subject
}

// Subject is one monitored node in a [Batch].
type Subject struct {
	// ID identifies the node with its incarnation. It is opaque and not empty.
	ID string
	// Available is the caller's present verdict.
	Available bool
	// Ages are how long before the moment of the batch each new answer arrived, the
	// oldest answer first, so that ages fall; each is at least 0. Empty: no new
	// answer.
	Ages []time.Duration
}

// Verdicts is the answer to a [Batch].
type Verdicts struct {
	// Number is the number of the batch that is answered.
	Number uint64
	// Changes are the verdicts that differ from the caller's, at most one for a node.
	Changes []Verdict
}

// Verdict is a changed verdict about one node.
type Verdict struct {
	// ID is the ID of a subject of the batch.
	ID string
	// Available is the new verdict.
	Available bool
	// Reason is the reason in words, for an operator. It must not be empty.
	Reason string
}

// Check reports every way in which v is no answer to b: another number, a node that is
// not in the batch or is named twice, an unchanged verdict, a missing reason. The
// error wraps [ErrBadVerdicts].
func (v Verdicts) Check(b Batch) error {
	var faults []error
	refuse := func(format string, values ...any) {
		faults = append(faults, fmt.Errorf("fd: %w: "+format, append([]any{ErrBadVerdicts}, values...)...))
	}
	if v.Number != b.Number {
		refuse("number %d answers batch %d", v.Number, b.Number)
	}
	if len(v.Changes) == 0 { // As nearly always: no node has to be found.
		return errors.Join(faults...)
	}
	inForce := make(map[string]bool, len(b.Subjects))
	for _, s := range b.Subjects {
		inForce[s.ID] = s.Available
	}
	named := make(map[string]bool, len(v.Changes))
	for _, c := range v.Changes {
		before, known := inForce[c.ID]
		switch {
		case !known:
			refuse("%q is not in the batch", c.ID)
		case named[c.ID]:
			refuse("%q is named twice", c.ID)
		case c.Available == before:
			refuse("%q has available=%t already", c.ID, before)
		case c.Reason == "":
			refuse("%q has no reason", c.ID)
		}
		named[c.ID] = true
	}
	return errors.Join(faults...)
}

// DetectorJudge is a [Judge] with a [Detector] for each node. With it, the author of a
// detector for another process only writes a Detector. Like every Judge, it need not
// be safe for concurrent use, and is not.
type DetectorJudge struct {
	newDetector Factory
	number      uint64
	now         time.Time    // The moment of the latest batch, on a clock of its own.
	judged      []judgedNode // The subjects of the latest batch, in its order; no id is there twice.
}

// judgedNode is a node with its detector.
type judgedNode struct {
	id       string
	detector Detector
}

var _ Judge = (*DetectorJudge)(nil)

// NewDetectorJudge returns a judge that has seen no batch.
func NewDetectorJudge(newDetector Factory) *DetectorJudge {
	return &DetectorJudge{newDetector: newDetector}
}

// Judge feeds the arrivals to the detectors and returns the verdicts that differ from
// the caller's, in the order of the batch. It does not wait. The error wraps
// [ErrOutOfStep] or [ErrBadBatch]; the detectors have then learnt nothing from the
// batch.
func (j *DetectorJudge) Judge(_ context.Context, b Batch) (Verdicts, error) {
	if b.Number != 1 && (j.number == 0 || b.Number != j.number+1) {
		return Verdicts{}, fmt.Errorf("fd: %w: got number %d after %d", ErrOutOfStep, b.Number, j.number)
	}
	// Subjects are nearly always those of the batch before, in the same order. Then no id has to
	// be looked up, nor compared with the others.
	same := slices.EqualFunc(j.judged, b.Subjects, func(n judgedNode, s Subject) bool { return n.id == s.ID })
	if err := b.check(same); err != nil {
		return Verdicts{}, err
	}
	if b.Number == 1 {
		j.judged, j.now, same = nil, time.Unix(0, 0), false
	}
	if !same {
		j.judged = j.detectorsOf(b.Subjects)
	}
	j.number, j.now = b.Number, j.now.Add(b.Elapsed)
	answer := Verdicts{Number: b.Number}
	for i := range b.Subjects {
		s, d := &b.Subjects[i], j.judged[i].detector
		for _, age := range s.Ages {
			d.Heartbeat(j.now.Add(-age))
		}
		if available := d.Available(j.now); available != s.Available {
			answer.Changes = append(answer.Changes, Verdict{ID: s.ID, Available: available, Reason: j.reason(d)})
		}
	}
	return answer, nil
}

// detectorsOf returns the subjects with the detectors that they have, and new ones for others.
func (j *DetectorJudge) detectorsOf(subjects []Subject) []judgedNode {
	known := make(map[string]Detector, len(j.judged))
	for _, n := range j.judged {
		known[n.id] = n.detector
	}
	nodes := make([]judgedNode, len(subjects))
	for i, s := range subjects {
		d := known[s.ID]
		if d == nil {
			d = j.newDetector()
		}
		nodes[i] = judgedNode{s.ID, d}
	}
	return nodes
}

func (j *DetectorJudge) reason(d Detector) string {
	if accrual, ok := d.(Accrual); ok {
		return fmt.Sprintf("phi is %.2f", accrual.Phi(j.now))
	}
	if d.Available(j.now) {
		return "answers arrive"
	}
	return "no answer arrived for too long"
}

// check reports a batch that breaks the contract. Distinct says that its ids are known to be valid
// and different.
func (b Batch) check(distinct bool) error {
	if b.Elapsed < 0 || b.Number == 1 && b.Elapsed != 0 {
		return fmt.Errorf("fd: %w: elapsed %v in batch %d", ErrBadBatch, b.Elapsed, b.Number)
	}
	var seen map[string]bool
	if !distinct {
		seen = make(map[string]bool, len(b.Subjects))
	}
	for i := range b.Subjects {
		s := &b.Subjects[i]
		if !distinct {
			if s.ID == "" || seen[s.ID] {
				return fmt.Errorf("fd: %w: id %q is empty or given twice", ErrBadBatch, s.ID)
			}
			seen[s.ID] = true
		}
		for i, age := range s.Ages {
			if age < 0 || i > 0 && age > s.Ages[i-1] {
				return fmt.Errorf("fd: %w: ages of %q are negative or rise: %v", ErrBadBatch, s.ID, s.Ages)
			}
		}
	}
	return nil
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package census asks all nodes at once what they know of a kind, and answers such questions of other nodes. An
// [Asker] connects the survey machine (internal/survey), which decides who is asked and how long, with its node; a
// [Kind] looks for what a node was asked. Both are safe for concurrent use.
package census

import (
	"context"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding/internal/asking"
	"github.com/quorate/quorate/sharding/internal/survey"
)

// Asker gives questions to the survey machine of a node, and waits for the answers; inspect looks for what the node was
// asked, on a goroutine of its own for each question, of which the machine permits a few at a time.
type Asker struct {
	cfg    Config
	handle *machine.Handle
	open   asking.Questions[survey.Finished]
}

// Config is what an [Asker] needs of its node. No field is nil.
type Config struct {
	Context context.Context //nolint:containedctx // Ends with the node, and with it the looking.
	Ended   <-chan struct{} // Closed when the node has ended: nobody waits for an answer any more.
	Go      func(func())    // Runs a function on a goroutine of the node.
	// Kind returns what answers about a kind; nil if the kind does not run here.
	Kind func(name string) *Kind
	// Standing reports whether the node may host at present, Drained whether it was told to host nothing.
	Standing, Drained func() bool
}

// Attach puts the survey machine on a node.
func Attach(node *membership.Node, cfg Config) (*Asker, error) {
	v := &Asker{cfg: cfg}
	handle, err := node.Attach(membership.Attachment{
		Component: machine.Component{
			Name: survey.ComponentName, Service: survey.Service, Codec: survey.Codec{}, Machine: survey.New(node.Self()),
		},
		Other: func(e machine.Effect) {
			if g, ok := e.(survey.Inspection); ok {
				// The goroutine is owned by the node, and ends with the limit of the question.
				cfg.Go(func() { v.inspect(g) })
			}
		},
		Published: func(event any) {
			if f, ok := event.(survey.Finished); ok {
				v.open.Answer(f.ID, f)
			}
		},
	})
	v.handle = handle
	return v, err
}

// Limits of questions.
const (
	// UsualTimeout is how long a question waits when its context has no deadline.
	UsualTimeout = 3 * time.Second
	// margin is how much of a deadline is left to put the answers together.
	margin = 50 * time.Millisecond
)

// Limit returns how long nodes may take to answer. The deadline of ctx is kept, so that what did come is told.
func Limit(ctx context.Context, usual time.Duration) time.Duration {
	at, limited := ctx.Deadline()
	if !limited {
		return usual
	}
	left := time.Until(at)
	return min(max(left-margin, left/2), survey.MaxLimit)
}

// Ask asks, and waits for the result. There is none, and ok is false, if ctx or the node ends first.
func (v *Asker) Ask(ctx context.Context, a survey.Ask) (f survey.Finished, ok bool) {
	return v.open.Ask(ctx, v.cfg.Ended, func(id uint64) error {
		a.ID = id
		return v.handle.PostWait(ctx, a)
	})
}

// inspect looks for what a question asks for, and hands the answer back.
func (v *Asker) inspect(g survey.Inspection) {
	ctx, cancel := context.WithTimeout(v.cfg.Context, g.Question.Limit)
	defer cancel()
	answer := survey.Answer{Fault: survey.FaultNoKind}
	if k := v.cfg.Kind(g.Question.Kind); k != nil {
		answer = k.answer(ctx, g.Question)
		answer.Standing, answer.Drained = v.cfg.Standing(), v.cfg.Drained()
	}
	answer.ID = g.Question.ID
	// Without the answer, since the node ends, whoever asks hears nothing.
	_ = v.handle.PostWait(v.cfg.Context, survey.InspectionResult{To: g.From, Answer: answer})
}

// atHomeTimeout is how long an explanation waits for the home of an entity.
const atHomeTimeout = time.Second

// AtHome asks the home of an entity what it is at, within the limit of an explanation. Home is the node as the
// explanation names it.
func (v *Asker) AtHome(ctx context.Context, k *Kind, home, entity string) []string {
	node, _ := k.HomeOf(k.Region.SlotOf(entity).Shard())
	unknown := "what the entity is at, only its home tells: ask " + home
	if node.String() != home {
		return []string{unknown}
	}
	q := survey.Question{Type: survey.TypeEntity, Kind: k.Name, After: survey.Cursor{ID: entity}}
	f, ok := v.Ask(ctx, survey.Ask{Limit: min(Limit(ctx, atHomeTimeout), atHomeTimeout), To: []survey.Part{{Node: node, Question: q}}})
	switch {
	case !ok:
		return []string{unknown}
	case len(f.Missing) > 0:
		return []string{unknown + ", which " + f.Missing[0].Why}
	case len(f.Answers) == 1 && len(f.Answers[0].Answer.Lines) > 0:
		return f.Answers[0].Answer.Lines
	default:
		return []string{"the entity is not in memory at its home"}
	}
}

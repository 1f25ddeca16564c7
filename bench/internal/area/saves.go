// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/postgres"
)

// Entities whose states are saved: first the state and what a message does to it; then the measurement,
// which starts a server and a node, has askers ask, and in the end looks for each change in the database.

// savedState is the state of an entity: the number of its last message, and what that has brought.
type savedState struct {
	Seq     uint64
	Payload []byte
}

// stateCodec is the codec of states, as small as that of the floor.
type stateCodec struct{}

func (stateCodec) Form() uint32 { return 1 }

func (stateCodec) Append(dst []byte, s *savedState) ([]byte, error) {
	return append(fmt.Appendf(dst, "%d ", s.Seq), s.Payload...), nil
}

func (stateCodec) Decode(_ uint32, b []byte, s *savedState) error {
	n, err := fmt.Sscanf(string(b), "%d ", &s.Seq)
	if err != nil || n != 1 {
		return errors.Join(errors.New("a state without a number"), err)
	}
	return nil
}

// receive saves what a message brings. Its number has to be the next: one that is lost or doubled
// is noticed.
func receive(c *state.Context[savedState], m *rig.Message) error {
	if s := c.State(); m.Seq != s.Seq+1 {
		return fmt.Errorf("message %d came to a state of %d", m.Seq, s.Seq)
	}
	c.State().Seq, c.State().Payload = m.Seq, m.Payload
	return c.Reply(&rig.Message{Sender: m.Sender, Seq: m.Seq})
}

// measureSaves asks entities to change their states, each by one asker.
func measureSaves(ctx context.Context, s rig.Spec, _ *rig.Link) (figure.Outcome, error) {
	server, err := startServer(ctx)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer server.end()
	store := postgres.New(server.pool, postgres.Options{})
	if err := store.Create(ctx); err != nil {
		return figure.Outcome{}, err
	}
	keeper, err := state.NewKeeper(store, state.Default(), state.WithLogger(quiet()))
	if err != nil {
		return figure.Outcome{}, err
	}
	node, err := startNode(ctx, nil, nil)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer dropNode(node)
	kind := sharding.Kind[*rig.Message]{Name: kindName, Codec: rig.Codec{}, New: state.Snapshots(keeper, stateCodec{}, receive)}
	region, err := sharding.Start(node, kind)
	if err != nil {
		return figure.Outcome{}, err
	}
	askers := make([]*asker, s.Senders)
	for i := range askers {
		askers[i] = &asker{region: region, name: entityName(i), payload: make([]byte, s.Size)}
	}
	if err := together(askers, func(a *asker) error { return a.ask(ctx) }); err != nil { // All shards have homes, and all entities live.
		return figure.Outcome{}, err
	}
	began := time.Now()
	err = together(askers, func(a *asker) error {
		a.took = nil
		for time.Since(began) < s.Time {
			if err := a.ask(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return figure.Outcome{}, err
	}
	seconds := time.Since(began).Seconds()
	out := figure.Outcome{}
	var all []time.Duration
	for _, a := range askers {
		all = append(all, a.took...)
	}
	out.Values = map[string]float64{
		"p50":  rig.Microseconds(figure.Percentile(all, 0.5)),
		"rate": float64(len(all)) / seconds,
	}
	out.Lost, err = lost(ctx, server, askers)
	stats := keeper.Stats()
	out.Note = fmt.Sprintf("%d saves in %d calls of the store", stats.Saves, stats.SaveCalls)
	return out, err
}

// asker asks one entity, one question after the other.
type asker struct {
	region  *sharding.Region[*rig.Message]
	name    string
	payload []byte
	seq     uint64
	took    []time.Duration
}

func (a *asker) ask(ctx context.Context) error {
	a.seq++
	at := time.Now()
	answer, err := sharding.Ask[*rig.Message](ctx, a.region, a.name, &rig.Message{Seq: a.seq, Ask: true, Payload: a.payload})
	if err == nil && answer.Seq != a.seq {
		err = fmt.Errorf("bench: the answer is to question %d, want %d", answer.Seq, a.seq)
	}
	a.took = append(a.took, time.Since(at))
	return err
}

// together runs a function for all askers, each in a goroutine, and waits for them.
func together(askers []*asker, f func(*asker) error) error {
	faults := make([]error, len(askers))
	var asking sync.WaitGroup
	for i, a := range askers {
		asking.Go(func() { faults[i] = f(a) })
	}
	asking.Wait()
	return errors.Join(faults...)
}

// lost counts the changes that were answered and are not in the database.
func lost(ctx context.Context, s *server, askers []*asker) (n uint64, err error) {
	for _, a := range askers {
		var version uint64
		row := s.pool.QueryRow(ctx, `SELECT version FROM quorate_states WHERE id = $1`, []byte(a.name))
		if err := row.Scan(&version); err != nil {
			return 0, err
		}
		n += max(a.seq, version) - version
	}
	return n, nil
}

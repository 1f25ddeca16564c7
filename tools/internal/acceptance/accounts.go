// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state"
)

// The program [accounts]: entities whose state is saved. Users, of whom a third are clients outside of the cluster, pay
// in, and are told that it is done, that it is not, or that nobody knows; some commands are refused, or fail, after
// they have changed the state. At the end each account has what was acknowledged, and of what nobody knew each payment
// once or not at all.

const (
	accountKind = "account"
	maxAccounts = 8
)

// refused is the answer to a command that is refused.
const refused = "refused"

type text = *wrapperspb.StringValue

// account is the state of an account: the payments that it has had.
type account struct{ Payments []string }

// handle handles a command: "pay", "refuse" and "fail" with the name of a payment, or "show".
func handle(c *state.Context[account], message text) error {
	verb, payment, _ := strings.Cut(message.GetValue(), " ")
	if verb != "show" {
		c.State().Payments = append(c.State().Payments, payment)
	}
	switch verb {
	case "refuse":
		return sharding.Refuse(wrapperspb.String(refused))
	case "fail":
		return errors.New("it fails")
	}
	return c.Reply(wrapperspb.String(strings.Join(c.State().Payments, ",")))
}

// paymentOutcomes are the payments to an account of which users were told that they are done, and those of which
// nobody knows.
type paymentOutcomes struct{ acknowledged, unknown map[string]bool }

// accounts is the program: its users, and what they were told.
type accounts struct {
	*world

	outside  *client.Client // Of users who are no members.
	answered atomic.Int64   // How often they got an answer.

	guard   sync.Mutex
	regions map[*clustertest.Node]*sharding.Region[text]
	of      map[string]*paymentOutcomes
}

func newAccounts(w *world) *accounts {
	p := &accounts{world: w, regions: map[*clustertest.Node]*sharding.Region[text]{}, of: map[string]*paymentOutcomes{}}
	for i := range maxAccounts {
		p.of[fmt.Sprint("a", i)] = &paymentOutcomes{map[string]bool{}, map[string]bool{}}
	}
	cfg := client.Default()
	for i := range seedsListed {
		cfg.Addresses = append(cfg.Addresses, gatewayOf(i))
	}
	var err error
	if p.outside, err = client.Open(cfg, client.WithDial(w.c.DialClient), client.WithLogger(slog.New(slog.DiscardHandler))); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = p.outside.Close() }) // It never fails.
	return p
}

func (p *accounts) join(n *clustertest.Node) error {
	region, err := sharding.Start(n, sharding.Kind[text]{Name: accountKind, Shards: 12, New: state.Snapshots(n.States(), state.JSON[account](), handle)})
	p.guard.Lock()
	defer p.guard.Unlock()
	p.regions[n] = region
	return err
}

func (p *accounts) work(ctx context.Context) {
	p.users(ctx, "accounts", users, 300*time.Millisecond, func(r *rand.Rand, user, k int) { p.step(r, fmt.Sprintf("%d.%d", user, k)) })
}

// step makes a payment, or one that is refused.
func (p *accounts) step(r *rand.Rand, payment string) {
	id := fmt.Sprint("a", r.IntN(maxAccounts))
	verb := []string{"pay", "pay", "pay", "pay", "refuse", "fail"}[r.IntN(6)]
	ctx, cancel := context.WithTimeout(context.Background(), []time.Duration{20 * time.Millisecond, time.Second, 20 * time.Second}[r.IntN(3)])
	defer cancel()
	ask := p.askOutside
	if n := p.any(r); r.IntN(3) > 0 {
		ask = func(ctx context.Context, id, command string) ([]string, error) { return p.ask(ctx, n, id, command) }
	}
	answer, err := ask(ctx, id, verb+" "+payment)
	p.guard.Lock()
	defer p.guard.Unlock()
	switch {
	case verb != "pay": // A refusal, or a failure, changes nothing, whoever hears of it.
		if err == nil && (verb == "fail" || !slices.Equal(answer, []string{refused})) {
			p.violation("account %s: %s of payment %s was answered by %v", id, verb, payment, answer)
		}
	case err == nil:
		p.of[id].acknowledged[payment] = true
	case !errors.Is(err, sharding.ErrNotDelivered) && !errors.Is(err, client.ErrNotDelivered):
		p.of[id].unknown[payment] = true
	}
}

func (p *accounts) ask(ctx context.Context, n *clustertest.Node, id, command string) ([]string, error) {
	p.guard.Lock()
	region := p.regions[n]
	p.guard.Unlock()
	if region == nil {
		return nil, sharding.ErrNotDelivered
	}
	reply, err := sharding.Ask[text](ctx, region, id, wrapperspb.String(command))
	if err != nil {
		return nil, err
	}
	return listed(reply), nil
}

// askOutside asks as a program that is no member.
func (p *accounts) askOutside(ctx context.Context, id, command string) ([]string, error) {
	message, err := proto.Marshal(wrapperspb.String(command))
	if err != nil {
		return nil, err
	}
	answer, err := p.outside.Ask(ctx, accountKind, id, message)
	if err != nil {
		return nil, err
	}
	p.answered.Add(1)
	reply := &wrapperspb.StringValue{}
	err = proto.Unmarshal(answer, reply)
	return listed(reply), err
}

// listed returns what a text lists.
func listed(t text) []string {
	return strings.FieldsFunc(t.GetValue(), func(r rune) bool { return r == ',' })
}

// The states are in a store: nothing ends with the nodes.
func (p *accounts) ended() {}

func (p *accounts) copied() func() {
	p.guard.Lock()
	defer p.guard.Unlock()
	then := map[string]map[string]bool{}
	for id, told := range p.of {
		then[id] = maps.Clone(told.acknowledged)
	}
	return func() {
		p.guard.Lock()
		defer p.guard.Unlock()
		for id, told := range p.of {
			for payment := range told.acknowledged {
				if !then[id][payment] {
					delete(told.acknowledged, payment)
				}
			}
		}
	}
}

func (p *accounts) judge(ctx context.Context) {
	if p.answered.Load() == 0 {
		p.violation("no client outside of the cluster was ever answered")
	}
	for id, told := range p.of {
		payments, err := p.ask(ctx, p.any(p.rand), id, "show")
		if err != nil {
			p.violation("account %s does not answer though nothing is wrong any more: %v", id, err)
			continue
		}
		times := map[string]int{}
		for _, payment := range payments {
			times[payment]++
		}
		for payment := range told.acknowledged {
			if times[payment] != 1 {
				p.violation("account %s: payment %s was acknowledged, and is there %d times", id, payment, times[payment])
			}
		}
		for payment, n := range times {
			switch {
			case told.acknowledged[payment]:
			case !told.unknown[payment]:
				p.violation("account %s: payment %s is there, of which it was said that it is not", id, payment)
			case n > 1:
				p.violation("account %s: payment %s is there %d times", id, payment, n)
			}
		}
	}
}

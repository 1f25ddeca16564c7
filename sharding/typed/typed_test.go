// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package typed_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/rpc"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/typed"
	bankv1 "github.com/quorate/quorate/sharding/typed/internal/bank/v1"
	"github.com/quorate/quorate/sharding/typed/internal/bank/v1/bankv1quorate"
	"github.com/quorate/quorate/transport/memory"
)

const limit = 10 * time.Minute

// account is an entity of the service, with memory that it takes along.
type account struct {
	bankv1quorate.UnimplementedAccountsEntity[*sharding.Context] // Has no Notes.

	balance, remarks int64
	log              *journal
}

// journal is what entities have done, whose methods run on several goroutines.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

var _ bankv1quorate.AccountsEntity[*sharding.Context] = (*account)(nil)

func (a *account) Deposit(_ *sharding.Context, m *bankv1.DepositRequest) (*bankv1.DepositResponse, error) {
	switch amount := m.GetAmount(); {
	case amount == 0:
		return nil, errors.New("broken")
	case amount < 0:
		return nil, rpc.Refuse("bad-amount", "%d is below zero", amount)
	case amount == 1_000_000:
		return nil, nil
	}
	a.balance += m.GetAmount()
	return &bankv1.DepositResponse{Balance: a.balance}, nil
}

func (a *account) Note(*sharding.Context, *bankv1.NoteRequest) error {
	a.remarks++
	return nil
}

func (a *account) Balance(*sharding.Context, *emptypb.Empty) (*wrapperspb.Int64Value, error) {
	return wrapperspb.Int64(a.balance*1000 + a.remarks), nil
}

func (a *account) Start(c *sharding.Context) error {
	a.log.add("start " + c.ID())
	return nil
}

func (a *account) Stop(c *sharding.Context) { a.log.add("stop " + c.ID()) }

func (a *account) ReceiveTimeout(c *sharding.Context) error {
	a.log.add("timeout " + c.ID())
	return nil
}

func (a *account) Snapshot(*sharding.Context) ([]byte, error) { return []byte{byte(a.balance)}, nil }

func (a *account) Restore(_ *sharding.Context, b []byte) error {
	a.balance = int64(b[0])
	return nil
}

// system starts nodes in the bubble of a test.
func systems(t *testing.T, n int, options ...sharding.Option) []*sharding.System {
	t.Helper()
	network := memory.NewNetwork()
	quiet := slog.New(slog.DiscardHandler)
	var all []*sharding.System
	for i := range n {
		cfg := membership.Default()
		cfg.Cluster.Name, cfg.Node.Address = "test", fmt.Sprintf("10.0.0.%d:7946", i+1)
		cfg.Membership.SeedNodes = []string{"10.0.0.1:7946"}
		m, err := membership.Start(t.Context(), cfg, membership.WithLogger(quiet), membership.WithTransport(network.Transport))
		require.NoError(t, err)
		s, err := sharding.New(m, sharding.Default(), append(options, sharding.WithLogger(quiet))...)
		require.NoError(t, err)
		all = append(all, s)
		t.Cleanup(func() { end(t, m, s) })
	}
	for _, s := range all {
		require.NoError(t, s.Node().AwaitUp(t.Context()))
	}
	return all
}

// end ends a node, and waits for its entities.
func end(t *testing.T, m io.Closer, s *sharding.System) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	require.NoError(t, m.Close())
	require.NoError(t, s.AwaitEnd(ctx))
}

// elsewhere returns an id whose entity lives on the first of two nodes, and not on the second.
func elsewhere(ctx context.Context, t *testing.T, accounts *bankv1quorate.Accounts, here *sharding.System) string {
	t.Helper()
	for i := range 100 {
		id := fmt.Sprintf("acct-%d", i)
		_, err := accounts.Balance(ctx, id, &emptypb.Empty{})
		require.NoError(t, err)
		if _, away := sharding.EncodedOf(here, "accounts").Elsewhere(id); away {
			return id
		}
	}
	require.FailNow(t, "no entity lives elsewhere")
	return ""
}

func TestTypedClientsReachTypedEntities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := systems(t, 2)
		log := new(journal)
		kind := func(hosts bool) *sharding.Region[*rpc.Call] {
			k := typed.Kind("accounts", bankv1quorate.AccountsService[*sharding.Context](),
				func(*sharding.Context) bankv1quorate.AccountsEntity[*sharding.Context] { return &account{log: log} })
			k.ProxyOnly = !hosts
			region, err := sharding.Start(nodes[map[bool]int{true: 0, false: 1}[hosts]], k)
			require.NoError(t, err)
			return region
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		local := bankv1quorate.NewAccounts(typed.Caller(kind(true)))
		remote := bankv1quorate.NewAccounts(typed.Caller(kind(false)))
		id := elsewhere(ctx, t, remote, nodes[1])
		for i, accounts := range []*bankv1quorate.Accounts{local, remote} {
			got, err := accounts.Deposit(ctx, id, &bankv1.DepositRequest{Amount: 5})
			require.NoError(t, err)
			require.EqualValues(t, 5*(i+1), got.GetBalance())
			require.NoError(t, accounts.Note(ctx, id, &bankv1.NoteRequest{Text: "x"}))
			balance, err := accounts.Balance(ctx, id, &emptypb.Empty{})
			require.NoError(t, err)
			require.EqualValues(t, 5000*(i+1)+i+1, balance.GetValue(), "what was told before counts")

			_, err = accounts.Deposit(ctx, id, &bankv1.DepositRequest{Amount: -1})
			fault, ok := errors.AsType[*rpc.Fault](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, rpc.Fault{Code: "bad-amount", Text: "-1 is below zero"}, *fault)
			_, err = accounts.Notes(ctx, id, &emptypb.Empty{}) //nolint:staticcheck // The entity does not have it.
			require.ErrorIs(t, err, rpc.ErrUnknownMethod)
			_, err = accounts.Deposit(ctx, id, nil)
			require.ErrorIs(t, err, rpc.ErrInvalid)
			_, err = accounts.Deposit(ctx, "", &bankv1.DepositRequest{Amount: 1})
			require.ErrorIs(t, err, sharding.ErrInvalid)
		}
		require.Contains(t, log.all(), "start "+id)
		require.NotContains(t, log.all(), "stop "+id, "neither refusals nor unknown methods end an entity")

		for _, amount := range []int64{0, 1_000_000} {
			_, err := remote.Deposit(ctx, id, &bankv1.DepositRequest{Amount: amount})
			require.ErrorIs(t, err, sharding.ErrEntityFailed)
		}
		require.Contains(t, log.all(), "stop "+id)
		<-time.After(time.Minute) // After two failures an entity rests.
		balance, err := remote.Balance(ctx, id, &emptypb.Empty{})
		require.NoError(t, err)
		require.Zero(t, balance.GetValue(), "an entity that failed begins anew")
	})
}

// proxy returns the kind of the service on a node that hosts none of its entities.
func proxy() sharding.Kind[*rpc.Call] {
	return typed.Kind[bankv1quorate.AccountsEntity[*sharding.Context]]("accounts", bankv1quorate.AccountsService[*sharding.Context](), nil)
}

// A message that cannot be encoded is not sent, and the error says why.
func TestWhatCannotBeEncodedIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := systems(t, 2)
		log := new(journal)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err := sharding.Start(nodes[0], typed.Kind("accounts", bankv1quorate.AccountsService[*sharding.Context](),
			func(*sharding.Context) bankv1quorate.AccountsEntity[*sharding.Context] { return &account{log: log} }))
		require.NoError(t, err)
		region, err := sharding.Start(nodes[1], proxy())
		require.NoError(t, err)
		accounts := bankv1quorate.NewAccounts(typed.Caller(region))
		id := elsewhere(ctx, t, accounts, nodes[1])
		err = accounts.Note(ctx, id, &bankv1.NoteRequest{Text: "\xff"})
		require.ErrorIs(t, err, sharding.ErrInvalid)
		require.ErrorContains(t, err, "UTF-8")
		balance, err := accounts.Balance(ctx, id, &emptypb.Empty{})
		require.NoError(t, err)
		require.Zero(t, balance.GetValue())
	})
}

// Spans have the full names of methods, on both sides; a method that the service does not have is no name of a span.
func TestSpansHaveTheNamesOfMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := tracetest.NewSpanRecorder()
		provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
		nodes := systems(t, 2, sharding.WithTracerProvider(provider))
		ctx, root := provider.Tracer("test").Start(t.Context(), "request")
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		_, err := sharding.Start(nodes[0], typed.Kind("accounts", bankv1quorate.AccountsService[*sharding.Context](),
			func(*sharding.Context) bankv1quorate.AccountsEntity[*sharding.Context] {
				return &account{log: new(journal)}
			}))
		require.NoError(t, err)
		region, err := sharding.Start(nodes[1], proxy())
		require.NoError(t, err)
		accounts, later := bankv1quorate.NewAccounts(typed.Caller(region)), bankv1quorate.NewAccountsV2(typed.Caller(region))
		id := elsewhere(ctx, t, accounts, nodes[1])
		recorder.Reset()
		_, err = accounts.Deposit(ctx, id, &bankv1.DepositRequest{Amount: 3})
		require.NoError(t, err)
		require.NoError(t, accounts.Note(ctx, id, &bankv1.NoteRequest{}))
		_, err = later.Close(ctx, id, &emptypb.Empty{})
		require.ErrorIs(t, err, rpc.ErrUnknownMethod)
		<-time.After(time.Second)
		root.End()
		var seen []string
		for _, s := range recorder.Ended() {
			line := s.Name() + " " + s.SpanKind().String()
			for _, kv := range s.Attributes() {
				if strings.HasPrefix(string(kv.Key), "rpc.") {
					line += " " + string(kv.Key) + "=" + kv.Value.AsString()
				}
			}
			seen = append(seen, line)
		}
		slices.Sort(seen)
		service := bankv1quorate.AccountsService[*sharding.Context]().Name()
		require.Equal(t, []string{
			"_OTHER client rpc.system.name=quorate rpc.method=_OTHER rpc.method_original=" + service + "/Close",
			"_OTHER server rpc.system.name=quorate rpc.method=_OTHER rpc.method_original=" + service + "/Close",
			service + "/Deposit client rpc.system.name=quorate rpc.method=" + service + "/Deposit",
			service + "/Deposit server rpc.system.name=quorate rpc.method=" + service + "/Deposit",
			"process accounts consumer rpc.method=" + service + "/Note",
			"request internal",
			"send accounts producer rpc.method=" + service + "/Note",
		}, seen)
	})
}

// shy is an entity that cannot start.
type shy struct {
	bankv1quorate.UnimplementedAccountsEntity[*sharding.Context]
}

func (shy) Start(*sharding.Context) error { return errors.New("not today") }

// A typed entity whose start fails handles no call.
func TestATypedEntityMayFailToStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := systems(t, 1)[0]
		region, err := sharding.Start(node, typed.Kind("accounts", bankv1quorate.AccountsService[*sharding.Context](),
			func(*sharding.Context) bankv1quorate.AccountsEntity[*sharding.Context] { return shy{} }))
		require.NoError(t, err)
		_, err = bankv1quorate.NewAccounts(typed.Caller(region)).Balance(t.Context(), "a", &emptypb.Empty{})
		require.ErrorIs(t, err, sharding.ErrEntityFailed)
		require.ErrorContains(t, err, "not today")
	})
}

// The memory of a typed entity goes along when its shard moves.
func TestTypedEntitiesTakeTheirMemoryAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := systems(t, 2)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		log := new(journal)
		var regions []*sharding.Region[*rpc.Call]
		for _, n := range nodes {
			region, err := sharding.Start(n, typed.Kind("accounts", bankv1quorate.AccountsService[*sharding.Context](),
				func(*sharding.Context) bankv1quorate.AccountsEntity[*sharding.Context] { return &account{log: log} }))
			require.NoError(t, err)
			regions = append(regions, region)
		}
		accounts := bankv1quorate.NewAccounts(typed.Caller(regions[1]))
		id := elsewhere(ctx, t, accounts, nodes[1])
		_, err := accounts.Deposit(ctx, id, &bankv1.DepositRequest{Amount: 7})
		require.NoError(t, err)
		require.NoError(t, nodes[0].Drain(ctx))
		balance, err := accounts.Balance(ctx, id, &emptypb.Empty{})
		require.NoError(t, err)
		require.EqualValues(t, 7000, balance.GetValue())
		require.Contains(t, log.all(), "stop "+id)
	})
}

// A client of a later version of the service gets typed errors for what the entities do not know, and they
// go on; a one-way call of such a method is counted as lost.
func TestLaterMethodsAreRefusedAndHarmNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := systems(t, 2)
		log := new(journal)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		k := typed.Kind("accounts", bankv1quorate.AccountsService[*sharding.Context](),
			func(*sharding.Context) bankv1quorate.AccountsEntity[*sharding.Context] { return &account{log: log} })
		_, err := sharding.Start(nodes[0], k)
		require.NoError(t, err)
		region, err := sharding.Start(nodes[1], proxy())
		require.NoError(t, err)
		old, later := bankv1quorate.NewAccounts(typed.Caller(region)), bankv1quorate.NewAccountsV2(typed.Caller(region))
		id := elsewhere(ctx, t, old, nodes[1])
		_, err = later.Deposit(ctx, id, &bankv1.DepositRequest{Amount: 3})
		require.NoError(t, err)
		_, err = later.Close(ctx, id, &emptypb.Empty{})
		require.ErrorIs(t, err, rpc.ErrUnknownMethod)
		require.NoError(t, later.Remind(ctx, id, &bankv1.NoteRequest{}))
		<-time.After(time.Second)
		require.EqualValues(t, 1, nodes[1].Stats().Failures.EntityFailed)
		balance, err := old.Balance(ctx, id, &emptypb.Empty{})
		require.NoError(t, err)
		require.EqualValues(t, 3000, balance.GetValue())
	})
}

// All nodes must run one service under the name of a kind.
func TestAnotherServiceIsRefused(t *testing.T) {
	require.NotEqual(t, typed.Codec(bankv1quorate.AccountsService[any]()).Name(), typed.Codec(bankv1quorate.AccountsV2Service[any]()).Name())
	codec := typed.Codec(bankv1quorate.TypeService[any]())
	require.NoError(t, codec.Check(new(rpc.Call)))
	require.Error(t, codec.Check("text"))
	_, err := codec.Append(nil, "text")
	require.Error(t, err)
	require.Error(t, codec.Decode(nil, new(int)))
}

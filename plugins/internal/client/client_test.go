// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/loopbacktest"
	"github.com/quorate/quorate/plugins/internal/policies/allocationpolicy"
	"github.com/quorate/quorate/plugins/internal/policies/downingpolicy"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// The client against a server that the tests direct. First it refuses answers that break
// the contract; then come calls without an answer, requests that are not sent, and
// statuses; last the manifest by which a plugin is configured.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hostile is a plugin that answers what a test tells it to.
type hostile struct {
	pluginv1.UnimplementedPluginServer
	pluginv1.UnimplementedDowningServer
	pluginv1.UnimplementedAllocationServer
	describe  func() (*pluginv1.DescribeResponse, error)
	configure func() (*pluginv1.ConfigureResponse, error)
	decide    func(context.Context) (*pluginv1.DowningDecideResponse, error)
	allocate  func() *pluginv1.AllocateResponse
	rebalance func() *pluginv1.RebalanceResponse
}

func (h *hostile) Describe(ctx context.Context, r *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	if h.describe == nil { // As a plugin of an earlier release.
		return h.UnimplementedPluginServer.Describe(ctx, r)
	}
	return h.describe()
}

func (h *hostile) Configure(context.Context, *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	return h.configure()
}

func (h *hostile) Decide(ctx context.Context, _ *pluginv1.DowningDecideRequest) (*pluginv1.DowningDecideResponse, error) {
	return h.decide(ctx)
}

func (h *hostile) Allocate(context.Context, *pluginv1.AllocateRequest) (*pluginv1.AllocateResponse, error) {
	return h.allocate(), nil
}

func (h *hostile) Rebalance(context.Context, *pluginv1.RebalanceRequest) (*pluginv1.RebalanceResponse, error) {
	return h.rebalance(), nil
}

func connect(t *testing.T, h *hostile) *grpc.ClientConn {
	t.Helper()
	return loopbacktest.Conn(t, func(r grpc.ServiceRegistrar) {
		pluginv1.RegisterPluginServer(r, h)
		pluginv1.RegisterDowningServer(r, h)
		pluginv1.RegisterAllocationServer(r, h)
	})
}

const long = 10 * time.Second

var promised = plugins.Class{Pure: true, MajorityOnly: true}

// split returns the view of a node in a cluster of five that reaches one other member.
func split() downing.View {
	members := downingtest.Members(5)
	return downingtest.SplitView(members, func(id gossip.NodeID) bool { return id == members[0].Node || id == members[1].Node },
		gossip.Base{downingtest.IDs(members)})
}

// covers F60: a decision that breaks the contract is an error, and no part of it is used.
func TestAnswersThatBreakTheContractAreNotUsed(t *testing.T) {
	for name, answer := range map[string]*pluginv1.DowningDecideResponse{
		"unknown node":           {Verdict: pluginv1.Verdict_VERDICT_KEEP_SIDE, Down: []uint32{2, 3, 77}},
		"verdict of the future":  {Verdict: 256},
		"negative verdict":       {Verdict: -1},
		"minority stays":         {Verdict: pluginv1.Verdict_VERDICT_KEEP_SIDE, Down: []uint32{2, 3, 4}},
		"member named twice":     {Verdict: pluginv1.Verdict_VERDICT_DOWN_SIDE, Down: []uint32{0, 0}},
		"half a side":            {Verdict: pluginv1.Verdict_VERDICT_DOWN_SIDE, Down: []uint32{0}},
		"long reason":            {Reason: strings.Repeat("x", downing.MaxReason+1)},
		"down without a verdict": {Down: []uint32{0}},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hostile{decide: func(context.Context) (*pluginv1.DowningDecideResponse, error) { return answer, nil }}
			d, err := downingpolicy.New(client.Target{Conn: connect(t, h), Name: "bad", Class: promised, Timeout: long}).Decide(t.Context(), split())
			require.ErrorIs(t, err, plugins.ErrAnswer)
			require.Zero(t, d)
			require.ErrorContains(t, err, `plugin "bad": decide: answer breaks the contract: `)
		})
	}
}

func TestAllocationsThatBreakTheContractAreNotUsed(t *testing.T) {
	regions := []allocation.RegionState{{ID: "a", Shards: []allocation.Shard{1}}, {ID: "b"}, {ID: "c", Leaving: true}}
	ask := allocation.AllocateRequest{Regions: regions, Shards: []allocation.Pending{{Shard: 7}}}
	move := allocation.RebalanceRequest{Regions: regions, Budget: allocation.Budget{Simultaneous: 1}}
	for name, h := range map[string]*hostile{
		"shard that was not asked for": {allocate: func() *pluginv1.AllocateResponse {
			return &pluginv1.AllocateResponse{Shard: []uint32{8}, Region: []uint32{0}}
		}},
		"region that is leaving": {allocate: func() *pluginv1.AllocateResponse {
			return &pluginv1.AllocateResponse{Shard: []uint32{7}, Region: []uint32{2}}
		}},
		"region beyond the table": {allocate: func() *pluginv1.AllocateResponse {
			return &pluginv1.AllocateResponse{Shard: []uint32{7}, Region: []uint32{3}}
		}},
		"columns of different lengths": {allocate: func() *pluginv1.AllocateResponse {
			return &pluginv1.AllocateResponse{Shard: []uint32{7}}
		}},
		"more than was asked for": {allocate: func() *pluginv1.AllocateResponse {
			return &pluginv1.AllocateResponse{Shard: make([]uint32, 1000), Region: make([]uint32, 1000)}
		}},
		"reason beyond the table": {allocate: func() *pluginv1.AllocateResponse {
			return &pluginv1.AllocateResponse{Shard: []uint32{7}, Region: []uint32{0}, Reason: []uint32{0}}
		}},
		"more reasons than placements": {allocate: func() *pluginv1.AllocateResponse {
			return &pluginv1.AllocateResponse{Reasons: make([]string, 1000)}
		}},
		"move from nowhere": {rebalance: func() *pluginv1.RebalanceResponse {
			return &pluginv1.RebalanceResponse{Shard: []uint32{1}, From: []uint32{1}, To: []uint32{0}}
		}},
		"beyond the budget": {rebalance: func() *pluginv1.RebalanceResponse {
			return &pluginv1.RebalanceResponse{Shard: []uint32{1, 1}, From: []uint32{0, 0}, To: []uint32{1, 1}}
		}},
		"move beyond the table": {rebalance: func() *pluginv1.RebalanceResponse {
			return &pluginv1.RebalanceResponse{Shard: []uint32{1}, From: []uint32{0}, To: []uint32{9}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a := allocationpolicy.New(client.Target{Conn: connect(t, h), Name: "bad", Timeout: long})
			var err error
			if h.allocate != nil {
				_, err = a.Allocate(t.Context(), ask)
			} else {
				_, err = a.Rebalance(t.Context(), move)
			}
			require.ErrorIs(t, err, plugins.ErrAnswer)
		})
	}
}

// A call to a plugin that hangs ends at the timeout of calls. covers F56.
func TestAPluginThatHangsCostsTheTimeoutAndNoMore(t *testing.T) {
	h := &hostile{decide: func(ctx context.Context) (*pluginv1.DowningDecideResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	watch := patience.Start(t)
	_, err := downingpolicy.New(client.Target{Conn: connect(t, h), Name: "slow", Class: promised, Timeout: 50 * time.Millisecond}).Decide(t.Context(), split())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, watch.Elapsed(), long)
}

func TestACallerThatGivesUpIsAnsweredSo(t *testing.T) {
	asked := make(chan struct{})
	h := &hostile{decide: func(ctx context.Context) (*pluginv1.DowningDecideResponse, error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // Ends when the call has arrived, which the test waits for.
		<-asked
		cancel()
	}()
	_, err := downingpolicy.New(client.Target{Conn: connect(t, h), Name: "slow", Class: promised, Timeout: long}).Decide(ctx, split())
	require.ErrorIs(t, err, context.Canceled)
}

func TestAnswersOf64MiBAreRefused(t *testing.T) {
	h := &hostile{decide: func(context.Context) (*pluginv1.DowningDecideResponse, error) {
		return &pluginv1.DowningDecideResponse{Reason: strings.Repeat("x", 64<<20)}, nil
	}}
	_, err := downingpolicy.New(client.Target{Conn: connect(t, h), Name: "great", Class: promised, Timeout: long}).Decide(t.Context(), split())
	require.ErrorIs(t, err, plugins.ErrLimit)
}

func TestRequestsBeyondTheLimitAreNotSent(t *testing.T) {
	h := &hostile{allocate: func() *pluginv1.AllocateResponse { panic("it arrived") }}
	r := allocation.AllocateRequest{Kind: strings.Repeat("x", plugins.MaxRequestBytes+1)}
	_, err := allocationpolicy.New(client.Target{Conn: connect(t, h), Name: "a", Timeout: long}).Allocate(t.Context(), r)
	require.ErrorIs(t, err, plugins.ErrLimit)
}

func TestStatusesMeanWhatTheContractSays(t *testing.T) {
	for code, want := range map[codes.Code]error{
		codes.Unknown:            plugins.ErrStrategy,
		codes.Internal:           plugins.ErrFault,
		codes.Unavailable:        plugins.ErrUnavailable,
		codes.DeadlineExceeded:   context.DeadlineExceeded,
		codes.ResourceExhausted:  plugins.ErrLimit,
		codes.InvalidArgument:    plugins.ErrRequest,
		codes.FailedPrecondition: plugins.ErrRequest,
		codes.Unimplemented:      plugins.ErrPolicy,
		codes.DataLoss:           plugins.ErrAnswer,
		codes.Canceled:           plugins.ErrUnavailable, // This caller has not given up.
	} {
		h := &hostile{decide: func(context.Context) (*pluginv1.DowningDecideResponse, error) {
			return nil, status.Error(code, "first\nsecond "+strings.Repeat("x", 2000))
		}}
		_, err := downingpolicy.New(client.Target{Conn: connect(t, h), Name: "w", Class: promised, Timeout: long}).Decide(t.Context(), split())
		require.ErrorIs(t, err, want, code)
		var call *plugins.CallError
		require.ErrorAs(t, err, &call)
		require.Equal(t, "decide", call.Call)
		require.Len(t, call.Cause.Error(), 1024)
		require.True(t, strings.HasPrefix(call.Cause.Error(), "first second x"))
		var exposed interface{ GRPCStatus() *status.Status }
		require.NotErrorAs(t, err, &exposed, "the transport is exposed")
	}
}

func TestAClosedConnectionIsUnavailable(t *testing.T) {
	conn := connect(t, &hostile{})
	require.NoError(t, conn.Close())
	_, err := downingpolicy.New(client.Target{Conn: conn, Name: "w", Class: promised, Timeout: long}).Decide(t.Context(), split())
	require.ErrorIs(t, err, plugins.ErrUnavailable)
}

func TestAViewThatIsNotWellFormedIsNotSent(t *testing.T) {
	v := split()
	v.Self = downingtest.Node(99)
	_, err := downingpolicy.New(client.Target{Conn: connect(t, &hostile{}), Name: "w", Class: promised, Timeout: long}).Decide(t.Context(), v)
	require.ErrorIs(t, err, plugins.ErrRequest)
	require.ErrorIs(t, err, downing.ErrContract)
}

func TestConfigureReturnsTheManifest(t *testing.T) {
	h := &hostile{configure: func() (*pluginv1.ConfigureResponse, error) {
		return &pluginv1.ConfigureResponse{
			Name: "witness", Version: "1.2", Policy: pluginv1.Policy_POLICY_JOIN_DECIDER, Class: &pluginv1.Class{Pure: true},
		}, nil
	}}
	m, err := client.Configure(t.Context(), connect(t, h), "w", "1.0", map[string]any{"a": 1})
	require.NoError(t, err)
	require.Equal(t, plugins.Manifest{
		Name: "witness", Version: "1.2", Policy: plugins.JoinDecider, Contract: plugins.Version1, Class: plugins.Class{Pure: true},
	}, m)
}

func TestConfigureRefusesWhatIsNoManifest(t *testing.T) {
	for name, c := range map[string]struct {
		answer *pluginv1.ConfigureResponse
		err    error
		want   error
	}{
		"no policy":     {answer: &pluginv1.ConfigureResponse{Name: "x"}, want: plugins.ErrAnswer},
		"future policy": {answer: &pluginv1.ConfigureResponse{Name: "x", Policy: 99}, want: plugins.ErrAnswer},
		"no name":       {answer: &pluginv1.ConfigureResponse{Policy: 1}, want: plugins.ErrAnswer},
		"two lines":     {answer: &pluginv1.ConfigureResponse{Policy: 1, Name: "a\nb"}, want: plugins.ErrAnswer},
		"long name":     {answer: &pluginv1.ConfigureResponse{Policy: 1, Name: strings.Repeat("n", 129)}, want: plugins.ErrAnswer},
		"bad version":   {answer: &pluginv1.ConfigureResponse{Policy: 1, Name: "n", Version: "\x1b"}, want: plugins.ErrAnswer},
		"faults": {
			answer: &pluginv1.ConfigureResponse{Errors: []*pluginv1.SettingError{{Key: "url", Reason: "is\nempty"}}},
			want:   plugins.SettingError{Key: "url", Reason: "is empty"},
		},
		"old plugin": {err: status.Error(codes.Unimplemented, "what?"), want: plugins.ErrPolicy},
	} {
		h := &hostile{configure: func() (*pluginv1.ConfigureResponse, error) { return c.answer, c.err }}
		_, err := client.Configure(t.Context(), connect(t, h), "w", "", nil)
		require.ErrorIs(t, err, c.want, name)
	}
	_, err := client.Configure(t.Context(), connect(t, &hostile{}), "w", "", map[string]any{"f": func() {}})
	require.ErrorIs(t, err, plugins.ErrSettings)
}

// What a plugin says of itself is checked as what it declares when it is configured, and the size of its schema too.
func TestDescriptionsThatBreakTheContractAreRefused(t *testing.T) {
	h := &hostile{}
	conn := connect(t, h)
	_, _, err := client.Describe(t.Context(), conn, "bad")
	require.ErrorIs(t, err, plugins.ErrPolicy)
	good := func() *pluginv1.DescribeResponse {
		return &pluginv1.DescribeResponse{Name: "n", Policy: pluginv1.Policy_POLICY_DOWNING, SettingsSchema: make([]byte, plugins.MaxSchemaBytes)}
	}
	for name, spoil := range map[string]func(*pluginv1.DescribeResponse){
		"": func(*pluginv1.DescribeResponse) {}, "name": func(r *pluginv1.DescribeResponse) { r.Name = "" },
		"version": func(r *pluginv1.DescribeResponse) { r.Version = "1\n" }, "policy": func(r *pluginv1.DescribeResponse) { r.Policy = 99 },
		"settings_schema": func(r *pluginv1.DescribeResponse) { r.SettingsSchema = append(r.SettingsSchema, 0) },
	} {
		h.describe = func() (*pluginv1.DescribeResponse, error) {
			r := good()
			spoil(r)
			return r, nil
		}
		_, text, err := client.Describe(t.Context(), conn, "bad")
		if name == "" {
			require.NoError(t, err)
			require.Len(t, text, plugins.MaxSchemaBytes)
			continue
		}
		require.ErrorIs(t, err, plugins.ErrAnswer)
		require.ErrorContains(t, err, name)
	}
}

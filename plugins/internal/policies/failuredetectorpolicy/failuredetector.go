// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package failuredetectorpolicy is the policy that judges whether nodes are believed alive.
//
// A [Judge] owns nothing: the owner of the connection supervises and closes it. It may be
// called from any goroutine; the plugin answers one call after the other. The functions that
// convert messages are pure.
package failuredetectorpolicy

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/contract"
	"github.com/quorate/quorate/plugins/internal/server"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Contract describes the policy.
func Contract() contract.Of[fd.Judge] {
	return contract.Of[fd.Judge]{
		Name:   plugins.FailureDetector,
		Client: func(t client.Target) fd.Judge { return New(t) },
		Register: func(r grpc.ServiceRegistrar, s *server.Server) {
			pluginv1.RegisterFailureDetectorServer(r, &service{server: s, turn: make(chan struct{}, 1)})
		},
		// A judge remembers the batches of its session, so that equal batches do not get equal
		// answers.
		Class: func(fd.Judge) plugins.Class { return plugins.Class{} },
		Try:   try,
	}
}

// Judge is an [fd.Judge] that a plugin serves in another process.
type Judge struct {
	target client.Target
	calls  pluginv1.FailureDetectorClient

	acknowledged atomic.Pointer[acknowledged] // Nil while the plugin has not said that it keeps any.
}

var _ fd.Judge = (*Judge)(nil)

// New returns the judge behind a connection to a plugin.
func New(t client.Target) *Judge {
	return &Judge{target: t, calls: pluginv1.NewFailureDetectorClient(t.Conn)}
}

// Judge asks the plugin, and checks the verdicts. The error wraps [fd.ErrOutOfStep] if the
// plugin, as a new process, has not had the batches before.
func (j *Judge) Judge(ctx context.Context, b fd.Batch) (fd.Verdicts, error) {
	outOfStep := false
	v, err := client.Ask(ctx, &j.target, "judge",
		func() (request, error) { return newRequest(&b, j.acknowledged.Load()) },
		func(ctx context.Context, r request, opts ...grpc.CallOption) (*pluginv1.JudgeResponse, error) {
			p, err := j.calls.Judge(ctx, r.JudgeRequest, opts...)
			outOfStep = r.lacks(status.Code(err))
			j.keep(r, p, err)
			return p, err
		},
		func(p *pluginv1.JudgeResponse) (fd.Verdicts, error) { return VerdictsFromProto(&b, p) })
	if outOfStep {
		return v, fmt.Errorf("%w: %w", fd.ErrOutOfStep, err)
	}
	return v, err
}

// keep notes what the plugin has after a call.
func (j *Judge) keep(r request, p *pluginv1.JudgeResponse, err error) {
	switch {
	case err != nil:
		j.acknowledged.Store(nil) // The session ends with the error, and the next one sends all nodes.
	case r.keeps != nil && p.GetKept() == r.keeps.number:
		j.acknowledged.Store(r.keeps)
	default:
		j.acknowledged.Store(nil)
	}
}

// service serves the calls of a judge.
type service struct {
	pluginv1.UnimplementedFailureDetectorServer
	server *server.Server
	keeper keeper

	// turn holds one element while the judge is asked: a judge answers one call at a time, and
	// a call that the host has given up may still be running when the next one comes.
	turn chan struct{}
}

// Judge asks the judge, when it is done with the call before.
func (s *service) Judge(ctx context.Context, r *pluginv1.JudgeRequest) (*pluginv1.JudgeResponse, error) {
	var nodes acknowledged
	return server.Answer(ctx, s.server, "judge",
		func() (b fd.Batch, err error) {
			b, nodes, err = s.keeper.batch(r)
			return b, err
		},
		func(j fd.Judge, ctx context.Context, b fd.Batch) (fd.Verdicts, error) {
			select {
			case s.turn <- struct{}{}:
			case <-ctx.Done():
				return fd.Verdicts{}, ctx.Err()
			}
			defer func() { <-s.turn }()
			v, err := j.Judge(ctx, b)
			if errors.Is(err, fd.ErrOutOfStep) {
				err = fmt.Errorf("%w: %w", server.ErrNotKept, err)
			}
			return v, err
		},
		func(b *fd.Batch, v *fd.Verdicts) (*pluginv1.JudgeResponse, error) {
			asked := *b
			if len(v.Changes) > 0 { // The judge, whose batch it was, may have changed it.
				var err error
				if asked, err = batchOf(r, nodes.ids); err != nil {
					return nil, err
				}
			}
			p, err := VerdictsToProto(&asked, v)
			if err == nil {
				p.Kept = nodes.number
			}
			return p, err
		})
}

// try tells a judge of a node that answered each second, and then not for 10 s.
func try(ctx context.Context, j fd.Judge) (string, error) {
	const answers = 20
	node := fd.Subject{ID: "example", Available: true, Ages: []time.Duration{10 * time.Millisecond}}
	for number := range uint64(answers) {
		b := fd.Batch{Number: number + 1, Subjects: []fd.Subject{node}}
		if number > 0 {
			b.Elapsed = time.Second
		}
		v, err := j.Judge(ctx, b)
		if err == nil {
			err = v.Check(b)
		}
		if err != nil {
			return "", err
		}
	}
	node.Ages = nil
	b := fd.Batch{Number: answers + 1, Elapsed: 10 * time.Second, Subjects: []fd.Subject{node}}
	v, err := j.Judge(ctx, b)
	if err == nil {
		err = v.Check(b)
	}
	switch {
	case err != nil:
		return "", err
	case len(v.Changes) == 0:
		return "a node is held alive that is silent for 10s after 20 answers a second apart", nil
	default:
		return "a node that is silent for 10s after 20 answers a second apart is suspected: " + v.Changes[0].Reason, nil
	}
}

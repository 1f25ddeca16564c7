// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/plugins"
)

// Process is a process of a plugin that is started as [Open] starts one, and neither configured, asked nor supervised
// by anybody: for tests of plugins, which send what no host sends.
type Process struct {
	starter starter
	running running
	closing sync.Once
	err     error // What Close returns.
}

// Launch starts a process of the plugin with a name. The path must be absolute. It returns when the process has shaken
// hands and answers a health check, or with what is wrong, as [Open]. The context is for Launch alone. No event is
// observed.
func Launch(ctx context.Context, name string, cfg plugins.Config, opts ...Option) (*Process, error) {
	cfg = cfg.WithDefaults()
	if err := validate(name, cfg); err != nil {
		return nil, err
	}
	o := optionsOf(opts)
	p := &Process{starter: starter{name: name, log: o.log.With("plugin", name), output: o.output}}
	if err := p.starter.open(o); err != nil {
		return nil, err
	}
	p.starter.warn(cfg)
	of := &spec{cfg: cfg}
	ctx, cancel := of.limited(ctx)
	defer cancel()
	var err error
	if p.running, err = p.starter.start(ctx, of); err != nil {
		return nil, errors.Join(p.starter.refusal(ctx, of, err), p.starter.launcher.Close())
	}
	return p, nil
}

// Call sends a request to a method, whatever its bytes, and returns the bytes of the answer. The context bounds the
// call. An error of the plugin has a status of gRPC.
func (p *Process) Call(ctx context.Context, method string, request []byte) (answer []byte, err error) {
	err = p.running.Conn().Invoke(ctx, method, request, &answer, grpc.ForceCodec(plainBytes{}), grpc.MaxCallSendMsgSize(max(len(request), plugins.MaxRequestBytes)))
	return answer, err
}

// Exited is closed when the process has ended and nothing of it is left.
func (p *Process) Exited() <-chan struct{} { return p.running.Exited() }

// Err says how the process ended, once Exited is closed.
func (p *Process) Err() error { return p.running.Err() }

// Close tells the process to stop, kills it if it does not within 3 s, and removes its files. It may be called again.
func (p *Process) Close() error {
	p.closing.Do(func() { p.err = errors.Join(p.running.Kill(killGrace), p.starter.launcher.Close()) })
	return p.err
}

// plainBytes passes messages on as the bytes that they are.
type plainBytes struct{}

func (plainBytes) Name() string { return "proto" }

func (plainBytes) Marshal(v any) ([]byte, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("no bytes but %T", v)
	}
	return b, nil
}

func (plainBytes) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("no bytes but %T", v)
	}
	*b = slices.Clone(data)
	return nil
}

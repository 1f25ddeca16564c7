// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
)

// Declaration is what a plugin says of itself before it is configured. It is empty for a plugin of an earlier release.
type Declaration struct {
	// Manifest is who it is. The class is not known before it is configured.
	Manifest plugins.Manifest
	// Schema is the schema of its settings; nil if it has none, or one that cannot be used.
	Schema *Schema
	// Fault says what is wrong with the description, above all with the schema; nil if nothing is.
	Fault error
}

// Check returns what the schema says against settings, as [Schema.Check] does; nil without a schema.
func (d Declaration) Check(settings map[string]any) error {
	if d.Schema == nil {
		return nil
	}
	return d.Schema.Check(settings)
}

// Describe starts a process of the plugin as [Launch] does, asks what it says of itself, and ends it. It is not
// configured. The context is for Describe alone, which takes start-timeout and 3 s at most, unless the plugin may be
// debugged.
func Describe(ctx context.Context, name string, cfg plugins.Config, opts ...Option) (Declaration, error) {
	cfg = cfg.WithDefaults()
	of := &spec{cfg: cfg}
	began, cancel := of.limited(ctx)
	defer cancel()
	p, err := Launch(began, name, cfg, opts...)
	if err != nil {
		return Declaration{}, err
	}
	d := describe(began, p.running.Conn(), name)
	d.Manifest.Contract = p.running.Contract()
	return d, p.Close()
}

// describe asks a process what it says of itself, within half of the time that the context has left.
func describe(ctx context.Context, conn grpc.ClientConnInterface, name string) Declaration {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	m, text, err := client.Describe(ctx, conn, name)
	d := Declaration{Manifest: m}
	switch {
	case errors.Is(err, plugins.ErrPolicy): // It does not know the call.
	case err != nil:
		d.Fault = err
	case len(text) > 0:
		d.Schema, d.Fault = ReadSchema(text)
	}
	return d
}

// admit holds the settings to what the first process with them says of itself. It returns the faults of the settings. A
// fault of the description is logged once, and the settings are left to the plugin.
func (p *Plugin) admit(ctx context.Context, proc running, s *spec) error {
	if s.described.Load() != nil {
		return nil
	}
	d := describe(ctx, proc.Conn(), p.name)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(d.Fault, plugins.ErrUnavailable) {
		return nil // Configure says that of the process.
	}
	if d.Fault == nil {
		refused := d.Check(s.cfg.Settings)
		if _, ok := errors.AsType[plugins.SettingErrors](refused); ok {
			return refused
		}
		d.Fault = refused
	}
	if d.Fault != nil {
		p.log.ErrorContext(ctx, "the settings are not checked before the plugin gets them: its description is wrong", "error", d.Fault)
	}
	s.described.Store(&d)
	return nil
}

// Declaration is what the plugin says of itself, asked before its first process with the present configuration was
// configured.
func (p *Plugin) Declaration() Declaration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.serving == nil || p.serving.spec.described.Load() == nil {
		return Declaration{}
	}
	return *p.serving.spec.described.Load()
}

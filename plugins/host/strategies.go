// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/contract"
	"github.com/quorate/quorate/plugins/internal/kinds"
)

// Kinds returns the kinds of plugins that are run.
func Kinds() []plugins.Kind { return kinds.Names() }

// As returns the plugin as a strategy of type T, the interface of its kind, such as
// [downing.Provider]. It stays valid for as long as the plugin is open, over restarts
// and swaps. Errors of its calls are of type [*plugins.CallError]. It returns an error
// that matches [plugins.ErrKind] if the plugin decides something else.
func As[T any](p *Plugin) (T, error) {
	var none T
	kind, ok := kinds.Of[T]()
	if !ok {
		return none, &plugins.Error{
			Plugin: p.name, Err: plugins.ErrKind, Cause: fmt.Errorf("no kind of plugin is a %v", reflect.TypeFor[T]()),
			Cure: "ask for the interface of a strategy",
		}
	}
	if is := p.Manifest().Kind; is != kind.Name() {
		return none, &plugins.Error{
			Plugin: p.name, Err: plugins.ErrKind, Cause: fmt.Errorf("it is of kind %s, and is used for %s", is, kind.Name()),
			Cure: "name a plugin of that kind where the strategy is chosen",
		}
	}
	//nolint:forcetypeassert // The table has it by this type.
	return p.strategy(kind).(T), nil
}

// Downing returns the plugin as a downing provider; see [As].
func (p *Plugin) Downing() (downing.Provider, error) { return As[downing.Provider](p) }

// Allocation returns the plugin as an allocation strategy; see [As].
func (p *Plugin) Allocation() (allocation.Strategy, error) { return As[allocation.Strategy](p) }

// Try asks the plugin for a small decision of its kind, and returns what was asked and
// decided in words. Who may not be asked for the sake of asking, such as a strategy with
// a vote outside, is asked all the same.
func (p *Plugin) Try(ctx context.Context) (string, error) {
	kind, _ := kinds.Named(p.Manifest().Kind) // It was opened, so it is there.
	return kind.Try(ctx, p.strategy(kind))
}

// strategy returns the plugin as a strategy of its kind. Its calls are counted.
func (p *Plugin) strategy(kind contract.Kind) any {
	return kind.Client(client.Target{
		Conn: connection{p}, Name: p.name, Class: p.Manifest().Class, Timeout: drainLimit, Called: p.called,
	})
}

// called counts a call and tells the observer.
func (p *Plugin) called(call string, began time.Time, err error) {
	p.calls.Add(1)
	if err != nil {
		p.failures.Add(1)
	}
	p.observe(Event{Kind: Called, Call: call, Latency: time.Since(began), Err: err})
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/wire"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// A plugin is asked who it is ([Describe]) and configured ([Configure]); then strategies ask it by [Ask]. Every error
// says with those of package plugins why there is no answer ([callError]).

// options keep the limits of the contract, whatever the connection permits.
func options() []grpc.CallOption {
	return []grpc.CallOption{
		grpc.MaxCallSendMsgSize(plugins.MaxRequestBytes), grpc.MaxCallRecvMsgSize(plugins.MaxAnswerBytes), grpc.ForceCodecV2(codec()),
	}
}

// Describe asks the plugin who it is and for the schema of its settings, which is empty if it has none. A plugin of an
// earlier release has no answer: the error matches [plugins.ErrPolicy]. The context bounds the call.
func Describe(ctx context.Context, conn grpc.ClientConnInterface, name string) (plugins.Manifest, []byte, error) {
	const call = "describe"
	p, err := pluginv1.NewPluginClient(conn).Describe(ctx, &pluginv1.DescribeRequest{}, options()...)
	if err != nil {
		return plugins.Manifest{}, nil, callError(ctx, name, call, err)
	}
	m, err := wire.Declared(p)
	if n := len(p.GetSettingsSchema()); err == nil && n > plugins.MaxSchemaBytes {
		err = wire.Malformed("settings_schema", "it has %d bytes, the limit is %d", n, plugins.MaxSchemaBytes)
	}
	if err != nil {
		return m, nil, &plugins.CallError{Plugin: name, Call: call, Err: plugins.ErrAnswer, Cause: err}
	}
	return m, p.GetSettingsSchema(), nil
}

// Configure hands the plugin its settings, as JSON; nil means none. The name is the
// plugin's name in the cluster's file. It returns what the plugin declares. An error that
// is not about the call matches [plugins.ErrSettings]. The context bounds the call.
func Configure(ctx context.Context, conn grpc.ClientConnInterface, name, hostVersion string, settings map[string]any) (plugins.Manifest, error) {
	const call = "configure"
	r := &pluginv1.ConfigureRequest{HostVersion: hostVersion, Name: name}
	if len(settings) > 0 {
		text, err := json.Marshal(settings)
		if err != nil {
			return plugins.Manifest{}, &plugins.CallError{Plugin: name, Call: call, Err: plugins.ErrSettings, Cause: err}
		}
		r.Settings = text
	}
	p, err := pluginv1.NewPluginClient(conn).Configure(ctx, r, options()...)
	if err != nil {
		return plugins.Manifest{}, callError(ctx, name, call, err)
	}
	m, err := wire.ManifestFromProto(p)
	switch {
	case errors.Is(err, plugins.ErrSettings):
		return m, &plugins.CallError{Plugin: name, Call: call, Err: plugins.ErrSettings, Cause: err}
	case err != nil:
		return m, &plugins.CallError{Plugin: name, Call: call, Err: plugins.ErrAnswer, Cause: err}
	}
	return m, nil
}

// Target is a plugin that is configured and can be called.
type Target struct {
	// Conn is the connection to the plugin.
	Conn grpc.ClientConnInterface
	// Name is the plugin's name in the cluster's file.
	Name string
	// Class is what the plugin declared.
	Class plugins.Class
	// Timeout is the longest time that a call may take.
	Timeout time.Duration
	// Resent is called for each request that is sent again as a whole, because the plugin
	// did not have what the request left out. May be nil.
	Resent func()
	// Called is called for each call that has ended, with its context. May be nil.
	Called func(ctx context.Context, call string, began time.Time, err error)
}

// Ask carries out one call of the contract: request makes the message, send sends it, and
// answer checks and converts the reply. Errors are of type [*plugins.CallError]; with an
// error the zero answer is returned.
func Ask[Q, P, R any](
	ctx context.Context, t *Target, call string,
	request func() (Q, error), send func(context.Context, Q, ...grpc.CallOption) (P, error), answer func(P) (R, error),
) (R, error) {
	began := time.Now()
	r, err := ask(ctx, t, call, request, send, answer)
	if t.Called != nil {
		t.Called(ctx, call, began, err)
	}
	return r, err
}

func ask[Q, P, R any](
	ctx context.Context, t *Target, call string,
	request func() (Q, error), send func(context.Context, Q, ...grpc.CallOption) (P, error), answer func(P) (R, error),
) (R, error) {
	var none R
	q, err := request()
	if err != nil {
		return none, &plugins.CallError{Plugin: t.Name, Call: call, Err: plugins.ErrRequest, Cause: err}
	}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	p, err := send(ctx, q, options()...)
	if err != nil {
		return none, callError(ctx, t.Name, call, err)
	}
	r, err := answer(p)
	if err != nil {
		return none, &plugins.CallError{Plugin: t.Name, Call: call, Err: plugins.ErrAnswer, Cause: err}
	}
	return r, nil
}

// callError says with the errors of package plugins why a call has no answer.
func callError(ctx context.Context, name, call string, err error) error {
	if away, ok := errors.AsType[*plugins.UnavailableError](err); ok {
		return &plugins.CallError{Plugin: name, Call: call, Err: plugins.ErrUnavailable, Cause: away}
	}
	s := status.Convert(err)
	e := &plugins.CallError{Plugin: name, Call: call, Err: sentinel(ctx, s.Code())}
	if text := wire.Line(s.Message(), wire.MaxTextBytes); text != "" {
		e.Cause = errors.New(text)
	}
	return e
}

// sentinel returns what a status means for the host.
func sentinel(ctx context.Context, code codes.Code) error {
	switch code {
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	case codes.Canceled:
		// A connection that is closed under a call has this code too.
		if ctx.Err() == nil {
			return plugins.ErrUnavailable
		}
		return ctx.Err()
	case codes.Unavailable:
		return plugins.ErrUnavailable
	case codes.Unknown:
		return plugins.ErrStrategy
	case codes.InvalidArgument, codes.FailedPrecondition:
		return plugins.ErrRequest
	case codes.ResourceExhausted:
		return plugins.ErrLimit
	case codes.Unimplemented:
		return plugins.ErrPolicy
	case codes.Internal:
		return plugins.ErrFault
	default:
		return plugins.ErrAnswer
	}
}

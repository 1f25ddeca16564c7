// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/plugins/internal/policies"
	"github.com/quorate/quorate/plugins/internal/server"
)

// Strategy is a strategy that can be served, made by [Downing], [Allocation],
// [FailureDetector], [JoinDecider], [Discovery] or [New].
// The zero value serves nothing.
type Strategy struct {
	service   server.Service
	configure func(settings []byte) (any, error)
	schema    func() ([]byte, error)
}

// Downing returns a downing provider to be served. The function is called with the
// settings from the cluster's file, once, or again if it fails; S is a struct (see the
// package comment), struct{} for a provider without settings. Its error is reported as a
// fault of the settings. It should not wait for anything outside: a provider that depends
// on an unreachable service returns errors when it is asked.
func Downing[S any](create func(S) (downing.Provider, error)) Strategy { return New(create) }

// Allocation returns an allocation strategy to be served; see [Downing]. If it has
// a method Class, the cluster is told (see [allocation.Classed]).
func Allocation[S any](create func(S) (allocation.Strategy, error)) Strategy { return New(create) }

// JoinDecider returns a strategy to be served that decides what a node without a cluster does
// next; see [Downing]. If it has a method Class, the cluster is told (see [bootstrap.Classed]).
func JoinDecider[S any](create func(S) (bootstrap.JoinDecider, error)) Strategy { return New(create) }

// Discovery returns a method of discovery to be served; see [Downing]. A source that cannot be
// reached is an error of the lookup, not of create. Announcing ([discovery.Announcer]) is no
// part of the contract. If it has a method Class, the cluster is told (see [discovery.Classed]).
func Discovery[S any](create func(S) (discovery.Discovery, error)) Strategy { return New(create) }

// FailureDetector returns a failure detector to be served; see [Downing]. The function makes what
// makes a detector for each node, as [fd.NewFactory] does. For a judge that looks at all nodes
// at once use [New] with an [fd.Judge].
func FailureDetector[S any](create func(S) (fd.Factory, error)) Strategy {
	return New(func(s S) (fd.Judge, error) {
		factory, err := create(s)
		if err != nil {
			return nil, err
		}
		return fd.NewDetectorJudge(factory), nil
	})
}

// New returns a strategy of any policy to be served; see [Downing]. T is the interface of
// the policy, such as [downing.Provider]. New panics if no policy has strategies of type
// T.
func New[S, T any](create func(S) (T, error)) Strategy {
	policy, ok := policies.Of[T]()
	if !ok {
		panic(fmt.Sprintf("sdk: no policy is a %v", reflect.TypeFor[T]()))
	}
	return Strategy{policy.Service, func(settings []byte) (any, error) { return build(settings, create) }, schemaOf[S]}
}

// build makes a strategy from settings in JSON.
func build[S, T any](text []byte, create func(S) (T, error)) (T, error) {
	var none T
	settings, err := decodeSettings[S](text)
	if err != nil {
		return none, err
	}
	strategy, err := create(settings)
	if err != nil {
		return none, settingErrors(err)
	}
	return strategy, nil
}

// Option sets what the plugin declares about itself.
type Option func(*about)

// about is what a plugin declares about itself.
type about struct{ name, version string }

// WithName sets the author's name of the strategy for logs and errors, up to 128 bytes;
// by default it is the name of the executable. A cluster's file refers to the plugin by a
// name of its own.
func WithName(name string) Option { return func(a *about) { a.name = name } }

// WithVersion sets the version of the plugin, such as "1.0.0", up to 128 bytes; by
// default it is empty.
func WithVersion(version string) Option { return func(a *about) { a.version = version } }

func aboutOf(opts []Option) about {
	var a about
	for _, o := range opts {
		o(&a)
	}
	if a.name == "" {
		a.name = filepath.Base(os.Args[0])
	}
	return a
}

// Register adds the services of the plugin to a gRPC server, in the state in which a host
// has just connected, for tests and for programs that serve a strategy in a way of their
// own. The server should have the limits of the contract: messages of up to
// [plugins.MaxRequestBytes] are received.
func (s Strategy) Register(r grpc.ServiceRegistrar, log *slog.Logger, opts ...Option) {
	s.server(log, aboutOf(opts)).Register(r)
}

func (s Strategy) server(log *slog.Logger, a about) *server.Server {
	return server.New(server.Strategy{Service: s.service, Name: a.name, Version: a.version, Configure: s.configure, Schema: s.schema}, log)
}

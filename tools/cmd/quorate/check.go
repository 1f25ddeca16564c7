// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/prometheus"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/toml"
	"github.com/quorate/quorate/ddata/durable"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/consul"
	"github.com/quorate/quorate/discovery/dns"
	"github.com/quorate/quorate/discovery/etcd"
	"github.com/quorate/quorate/discovery/file"
	"github.com/quorate/quorate/discovery/kubernetes"
	"github.com/quorate/quorate/discovery/multicast"
	"github.com/quorate/quorate/downing/lease"
	etcdleases "github.com/quorate/quorate/downing/lease/etcd"
	kubernetesleases "github.com/quorate/quorate/downing/lease/kubernetes"
	"github.com/quorate/quorate/plugins/host"
	"github.com/quorate/quorate/tools/internal/akka"
	"github.com/quorate/quorate/tools/internal/command"
	"github.com/quorate/quorate/tools/internal/hocon"
)

// check checks files for a program that links everything. It returns the faults that a
// program which links nothing but the cluster would report, and what this system does not
// keep of what the files say.
func check(brought command.Extensions, paths ...string) (needs, warnings config.Errors, err error) {
	own := whole(brought)
	own.Warn = func(key, reason string) { warnings = append(warnings, &config.Error{Key: key, Reason: reason}) }
	look := cluster.Check
	if brought.Each {
		look = cluster.CheckEach
	}
	if err := look(own, paths...); err != nil {
		return nil, nil, err
	}
	own.Whole, own.Warn = false, nil
	// A program without the format of a file sees nothing of its content, so the files
	// are checked with the formats too.
	for _, own.Options = range [][]cluster.Option{nil, formats()} {
		if faults, ok := errors.AsType[config.Errors](look(own, paths...)); ok {
			needs = append(needs, faults...)
		}
	}
	return distinct(needs), warnings, nil
}

// values lists the settings of files, for a program that links everything.
func values(brought command.Extensions, paths ...string) ([]config.Value, error) {
	return cluster.Settings(whole(brought), paths...)
}

// translate translates settings of Akka, for a program that links everything.
func translate(settings []hocon.Setting) (*akka.Translation, error) {
	return akka.Translate(settings, whole(command.Extensions{}))
}

// whole is a program that links everything, with what it brings itself.
func whole(brought command.Extensions) cluster.Extensions {
	own := cluster.Extensions{Strategies: brought.Strategies, Kinds: brought.Kinds, Whole: true}
	for _, name := range brought.Sections {
		own.Sections = append(own.Sections, config.Section{Name: name, Into: new(any)}) // The type is not known here.
	}
	own.Options = slices.Concat(formats(), []cluster.Option{cluster.WithMetrics(prometheus.Endpoint()), cluster.WithPlugins(host.New()), cluster.WithStore(durable.OpenIn)}, methods(), stores())
	return own
}

// formats are those of files that not every program reads.
func formats() []cluster.Option { return []cluster.Option{cluster.WithFormat(toml.Format())} }

// methods links every method of discovery that the project has.
func methods() []cluster.Option {
	return []cluster.Option{
		cluster.WithDiscovery(dns.Method, dns.Default(), func(c dns.Config) (discovery.Discovery, error) { return dns.New(c) }),
		cluster.WithDiscovery(file.Method, file.Default(), func(c file.Config) (discovery.Discovery, error) { return file.New(c) }),
		cluster.WithDiscovery(kubernetes.Method, kubernetes.Default(), func(c kubernetes.Config) (discovery.Discovery, error) { return kubernetes.New(c) }),
		cluster.WithDiscovery(consul.Method, consul.Default(), func(c consul.Config) (discovery.Discovery, error) { return consul.New(c) }),
		cluster.WithDiscovery(etcd.Method, etcd.Default(), func(c etcd.Config) (discovery.Discovery, error) { return etcd.New(c) }),
		cluster.WithDiscovery(multicast.Method, multicast.Default(), func(c multicast.Config) (discovery.Discovery, error) { return multicast.New(c) }),
	}
}

// stores links every store of leases that the project has, but that of files, which every node
// has.
func stores() []cluster.Option {
	return []cluster.Option{
		cluster.WithLeases(etcdleases.Kind, etcdleases.Default(), func(c etcdleases.Config) (lease.Store, error) { return etcdleases.New(c) }),
		cluster.WithLeases(kubernetesleases.Kind, kubernetesleases.Default(), func(c kubernetesleases.Config) (lease.Store, error) { return kubernetesleases.New(c) }),
	}
}

// distinct returns the faults that name something as not linked, each once.
func distinct(faults config.Errors) config.Errors {
	seen := map[string]bool{}
	return slices.DeleteFunc(faults, func(f *config.Error) bool {
		known := seen[f.Error()]
		seen[f.Error()] = true
		return known || !errors.Is(f, config.ErrNotLinked)
	})
}

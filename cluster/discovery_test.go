// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
)

// Nodes that look contact points up by a method of the program (reader), which has a
// section of its own (book): first a node does so, then configurations are checked, and
// methods that the program did not link are refused.

// book is the section of a method of discovery.
type book struct {
	Page  string `koanf:"page"`
	Shelf string `koanf:"shelf"`
}

// Paths returns the setting that is the path of a file.
func (b *book) Paths() []*string { return []*string{&b.Shelf} }

// Validate refuses a book without a page.
func (b book) Validate() error {
	if b.Page == "" {
		return field.Errorf("page", "none given")
	}
	return nil
}

// reader is the method of discovery: it finds the address on the page, and has to be closed.
type reader struct {
	page   string
	closed *atomic.Int32
}

func (r reader) Lookup(context.Context, discovery.Query) (discovery.Targets, error) {
	t, err := discovery.ParseTarget(r.page)
	return discovery.Targets{List: []discovery.Target{t}, Reason: "the page"}, err
}

func (r reader) Close() error {
	r.closed.Add(1)
	return nil
}

func reads(closed *atomic.Int32) cluster.Option {
	return cluster.WithDiscovery("book", book{}, func(b book) (discovery.Discovery, error) {
		if b.Page == "torn" {
			return nil, errors.New("the page is torn, at " + b.Shelf)
		}
		return reader{b.Page, closed}, nil
	})
}

func TestANodeLooksContactPointsUp(t *testing.T) {
	t.Parallel()
	var closed atomic.Int32
	address := free(t)
	path := file(t, "cluster: {name: test}", "node: {address: "+address+"}", "management: {address: 127.0.0.1:0}",
		"membership: {discovery: {methods: [book], required-contact-point-nr: 1, stable-margin: 100ms}}", "discovery-book: {page: '"+address+"'}")
	require.NoError(t, cluster.Check(cluster.Extensions{Options: []cluster.Option{reads(&closed)}}, path))
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), reads(&closed))...)
	require.NoError(t, err)
	ctx := patience.Context(t)
	require.NoError(t, node.AwaitUp(ctx))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+node.ManagementAddress()+"/bootstrap", http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	var answer management.BootstrapStatus
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	require.Equal(t, []management.ContactPoint{{Address: address, Answers: true}}, answer.ContactPoints)
	http.DefaultClient.CloseIdleConnections()
	require.NoError(t, node.Close())
	require.Positive(t, closed.Load())
}

// A section of a method that is not selected may hold anything. Faults of the methods that
// are selected, and of the decider, are refused at their keys.
func TestMethodsOfDiscoveryAreChecked(t *testing.T) {
	var closed atomic.Int32
	own := cluster.Extensions{Options: []cluster.Option{reads(&closed)}}
	linked := cluster.Extensions{Options: append(slices.Clone(own.Options), cluster.WithPlugins(new(stage)))}
	const name, here, page = "cluster: {name: test}", "node: {address: 127.0.0.1:7946}", "discovery-book: {page: a:1}"
	decides := func(name string) string {
		return "membership: {discovery: {methods: [book], join-decider: " + name + "}}"
	}
	for what, test := range map[string]struct {
		own   cluster.Extensions
		lines []string
		want  string
	}{
		"not selected":   {own, []string{"discovery-book: {leaf: 1}"}, ""},
		"selected":       {own, []string{"membership: {discovery: {methods: [book]}}", "discovery-book: {page: a:1}"}, ""},
		"without a page": {own, []string{"membership: {discovery: {methods: [book]}}"}, "discovery-book.page: none given"},
		"unknown key":    {own, []string{"membership: {discovery: {methods: [book]}}", "discovery-book: {pgae: a}"}, `:4: discovery-book.pgae: unknown key; did you mean "page"?`},
		"not linked":     {cluster.Extensions{}, []string{"membership: {discovery: {methods: [book]}}"}, `:3: membership.discovery.methods: the method "book" is not part of this program, which links "static": if it is a method of this project, import`},
		"unknown": {
			cluster.Extensions{Options: own.Options, Whole: true},
			[]string{"membership: {discovery: {methods: [bock]}}"},
			`:3: membership.discovery.methods: the method "bock" is unknown, there are "book", "static"; a method of the program itself is given to config check by --own`,
		},
		"method of the program": {cluster.Extensions{Strategies: []string{"book"}}, []string{"membership: {discovery: {methods: [book]}}"}, ""},
		"own detector":          {cluster.Extensions{Strategies: []string{"mine"}}, []string{"membership: {failure-detector: {strategy: mine}}"}, ""},
		"own decider":           {cluster.Extensions{Strategies: []string{"sage"}, Options: own.Options}, []string{decides("sage"), page}, ""},
		"no decider":            {own, []string{decides("sage"), page}, `:3: membership.discovery.join-decider: "sage" is not the name of a plugin, and the program gives no decider by WithJoinDecider: add it to the section plugins`},
		"another policy": {
			linked, []string{decides("x"), page, "plugins: {x: {policy: downing, path: /bin/x, unpinned: true}}"}, ":3: membership.discovery.join-decider: x is a plugin for downing, one for join-decider is needed",
		},
		"decider not linked": {
			own, []string{decides("x"), page, "plugins: {x: {policy: join-decider, path: /bin/x, unpinned: true}}"}, ":5: plugins: what runs plugins is not part of this program",
		},
		"a plugin decides":         {linked, []string{decides("x"), page, "plugins: {x: {policy: join-decider, path: /bin/x, unpinned: true}}"}, ""},
		"decider without a method": {linked, []string{"membership: {discovery: {join-decider: x}}", "plugins: {x: {policy: join-decider, path: /bin/x, unpinned: true}}"}, `:3: membership.discovery.join-decider: nobody asks "x"`},
		"a plugin finds":           {linked, []string{"membership: {discovery: {methods: [x]}}", "plugins: {x: {policy: discovery, path: /bin/x, unpinned: true}}"}, ""},
		"a plugin for something else": {
			linked,
			[]string{"membership: {discovery: {methods: [x]}}", "plugins: {x: {policy: downing, path: /bin/x, unpinned: true}}"},
			":3: membership.discovery.methods: x is a plugin for downing, one for discovery is needed",
		},
		"a plugin with the name of a method": {
			linked,
			[]string{"membership: {discovery: {methods: [book]}}", page, "plugins: {book: {policy: discovery, path: /bin/x, unpinned: true}}"},
			":5: plugins.book: the program links a method of that name; give the plugin another one",
		},
		"a plugin with a built-in name": {
			linked, []string{"plugins: {static: {policy: discovery, path: /bin/x, unpinned: true}}"}, ":3: plugins.static: is the name of a built-in strategy",
		},
		"static without seed nodes": {own, []string{"membership: {discovery: {methods: [static]}}"}, `the method "static" finds nobody`},
	} {
		t.Run(what, func(t *testing.T) {
			err := cluster.Check(test.own, file(t, append([]string{name, here}, test.lines...)...))
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorAs(t, err, new(config.Errors))
			require.ErrorContains(t, err, test.want)
		})
	}
	path := file(t, name, "node: {address: "+free(t)+"}", "membership: {discovery: {methods: [book]}}", "discovery-book: {page: torn, shelf: top/left}")
	_, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), reads(&closed))...)
	require.ErrorContains(t, err, "cluster: discovery: book: the page is torn, at "+filepath.Join(filepath.Dir(path), "top", "left"))
	t.Setenv("QUORATE_MEMBERSHIP__DISCOVERY__METHODS", "book")
	require.ErrorContains(t, cluster.Check(own, file(t, name, here)), "discovery-book.page: none given")
}

// A method that the program did not link is refused at its line, with the methods that it
// links, and with what to import and which option to give; the same by a check and by a start.
// No name is special: a method of the project and a slip of the pen are told the same.
func TestAMethodThatIsNotLinkedIsNamedWithItsCure(t *testing.T) {
	var closed atomic.Int32
	for _, name := range []string{"dns", "nonesuch"} {
		path := file(t, "cluster: {name: test}", "node: {address: 127.0.0.1:7946}", "membership: {discovery: {methods: [static, "+name+"], service: bank},", "  seed-nodes: [127.0.0.1:7946]}")
		_, started := cluster.Start(t.Context(), quiet(cluster.WithFile(path), reads(&closed))...)
		checked := cluster.Check(cluster.Extensions{Options: []cluster.Option{reads(&closed)}}, path)
		for what, err := range map[string]error{"start": started, "check": checked} {
			require.ErrorIs(t, err, config.ErrNotLinked, what)
			var faults config.Errors
			require.ErrorAs(t, err, &faults, what)
			require.Len(t, faults, 1, "%s: %v", what, err)
			require.Equal(t, path, faults[0].File, what)
			require.Equal(t, 3, faults[0].Line, what)
			require.Equal(t, "membership.discovery.methods", faults[0].Key, what)
			require.Equal(t, `the method "`+name+`" is not part of this program, which links "book", "static": if it is a method of this project, `+
				"import github.com/quorate/quorate/discovery/"+name+", and start the node with the option "+
				"cluster.WithDiscovery("+name+".Method, "+name+".Default(), func(c "+name+".Config) (discovery.Discovery, error) { return "+name+".New(c) })", faults[0].Reason, what)
		}
	}
}

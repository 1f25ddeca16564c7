// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/prometheus"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/toml"
	"github.com/quorate/quorate/ddata/durable"
	"github.com/quorate/quorate/plugins/host"
	"github.com/quorate/quorate/tools/internal/command"
)

// The tests of this package that ask the check and the start of a node about one file: the file is a tree of keys with
// values, written with a line for each key ([tree.write]), and both are asked in one call ([said]).

// tree is a part of a file: a key with a value as it is written, or with what stands below it.
type tree struct {
	name  string // "[]" for an item of a list.
	value string
	below []*tree
	line  int // In the file that was written last.
}

// at returns the tree of a path, which is made if it is not there.
func (t *tree) at(path []string) *tree {
	if len(path) == 0 {
		return t
	}
	i := slices.IndexFunc(t.below, func(b *tree) bool { return b.name == path[0] })
	if i < 0 {
		i, t.below = len(t.below), append(t.below, &tree{name: path[0]})
	}
	return t.below[i].at(path[1:])
}

// has reports whether a path has a value or something below it.
func (t *tree) has(path []string) bool {
	i := slices.IndexFunc(t.below, func(b *tree) bool { return len(path) > 0 && b.name == path[0] })
	return len(path) == 0 || i >= 0 && t.below[i].has(path[1:])
}

// set gives a path a value. What stood below it is gone.
func (t *tree) set(path []string, value string) {
	last := t.at(path)
	last.value, last.below = value, nil
}

// remove takes a path out, and what is empty without it.
func (t *tree) remove(path []string) {
	i := slices.IndexFunc(t.below, func(b *tree) bool { return b.name == path[0] })
	if i < 0 {
		return
	}
	if len(path) > 1 {
		t.below[i].remove(path[1:])
	}
	if len(path) == 1 || len(t.below[i].below) == 0 {
		t.below = slices.Delete(t.below, i, i+1)
	}
}

// lines returns what stands below a tree, the first line of it with a number.
func (t *tree) lines(indent string, first int) []string {
	var all []string
	for _, b := range t.below {
		b.line = first + len(all)
		switch {
		case b.name == "[]" && len(b.below) > 0:
			item := b.lines(indent+"  ", b.line)
			item[0] = indent + "- " + strings.TrimPrefix(item[0], indent+"  ")
			all = append(all, item...)
		case b.name == "[]":
			all = append(all, indent+"- "+b.value)
		default:
			all = append(all, strings.TrimRight(indent+b.name+": "+b.value, " "))
			all = append(all, b.lines(indent+"  ", b.line+1)...)
		}
	}
	return all
}

// write writes a file, and returns its path.
func (t *tree) write(tb testing.TB) string {
	tb.Helper()
	return t.writeIn(tb, tb.TempDir())
}

// writeIn writes a file into a directory.
func (t *tree) writeIn(tb testing.TB, dir string) string {
	tb.Helper()
	path := filepath.Join(dir, "cluster.yaml")
	require.NoError(tb, os.WriteFile(path, []byte(strings.Join(t.lines("", 1), "\n")+"\n"), 0o600))
	return path
}

// said returns the faults of a file, none if a node starts with it. The check of the command and a start must say the
// same.
func said(tb testing.TB, path string) config.Errors {
	tb.Helper()
	faults := refused(tb, path)
	if len(faults) == 0 {
		text, err := os.ReadFile(path)
		require.NoError(tb, err)
		require.NoError(tb, start(tb, linked(cluster.WithFile(path))...), "the check says ok of\n%s", text)
	}
	return faults
}

// refused returns the faults that a check finds in a file. If there are some, a start says the same, and the command,
// which words the names of what is not linked in its own way, finds the same places.
func refused(tb testing.TB, path string) config.Errors {
	tb.Helper()
	_, _, told := check(command.Extensions{}, path)
	err := cluster.Check(cluster.Extensions{Options: linked()}, path)
	known := func(err error) []string {
		return slices.DeleteFunc(places(tb, err), func(place string) bool {
			return strings.HasSuffix(place, ": states.store") // The command links none, and says what a program needs.
		})
	}
	require.ElementsMatch(tb, known(err), known(told))
	if err == nil {
		return nil
	}
	text, read := os.ReadFile(path)
	require.NoError(tb, read)
	require.EqualError(tb, start(tb, linked(cluster.WithFile(path))...), err.Error(), "of\n%s", text)
	faults, _ := errors.AsType[config.Errors](err)
	return faults
}

// checked returns the faults that a check finds in a file.
func checked(tb testing.TB, path string) config.Errors {
	tb.Helper()
	err := cluster.Check(cluster.Extensions{Options: linked()}, path)
	_ = places(tb, err)
	faults, _ := errors.AsType[config.Errors](err)
	return faults
}

// places returns where the faults of an error are, each with a file, a line and a key.
func places(tb testing.TB, err error) (all []string) {
	tb.Helper()
	if err == nil {
		return nil
	}
	faults, ok := errors.AsType[config.Errors](err)
	require.True(tb, ok, "%T: %v", err, err)
	for _, f := range faults {
		require.NotEmpty(tb, f.File, f.Error())
		require.NotZero(tb, f.Line, f.Error())
		require.NotEmpty(tb, f.Key, f.Error())
		all = append(all, fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Key))
	}
	return all
}

// linked are the options by which a program links what the command links, and some more.
func linked(more ...cluster.Option) []cluster.Option {
	return slices.Concat(methods(), stores(), more, []cluster.Option{
		cluster.WithFormat(toml.Format()), cluster.WithMetrics(prometheus.Endpoint()), cluster.WithPlugins(host.New()), cluster.WithStore(durable.OpenIn),
	})
}

// start starts a node, and ends it.
func start(tb testing.TB, options ...cluster.Option) error {
	tb.Helper()
	node, err := cluster.Start(tb.Context(), append(options, cluster.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err == nil {
		require.NoError(tb, node.Close())
	}
	return err
}

// free returns an address at which nothing listens. Its port lies below those that systems take for connections, and is
// given to no other test while this one runs: the UDP port of the same number is held meanwhile.
func free(tb testing.TB) string {
	tb.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		held, err := new(net.ListenConfig).ListenPacket(tb.Context(), "udp", address)
		if err != nil {
			continue
		}
		tb.Cleanup(func() { _ = held.Close() }) // Nothing was sent.
		if l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", address); err == nil {
			require.NoError(tb, l.Close())
			return address
		}
	}
	require.FailNow(tb, "there is no free port from 20000 to 29999")
	return ""
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
)

// A node is configured by koanf alone: a provider over an instance. It reloads what both say, and goes on with what it
// has when one fails.
func TestANodeOfProviders(t *testing.T) {
	t.Parallel()
	address := free(t)
	k := koanf.New(".")
	require.NoError(t, k.Load(confmap.Provider(map[string]any{
		"cluster.name": "test", "node.address": address, "membership.seed-nodes": []string{address},
	}, "."), nil))
	flags := &flagsOfTest{tree: map[string]any{"log": map[string]any{"level": "warn"}}}
	saw := newPart("program", nil)
	node, err := cluster.Start(t.Context(), quiet(cluster.WithKoanf(k), cluster.WithProvider("flags", flags, nil), cluster.WithReload(saw.prepare))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, node.Close()) })
	require.NoError(t, k.Set("log.level", "debug"))
	require.NoError(t, k.Set("sharding.passivate-after", "90s"))
	require.NoError(t, node.Reload(t.Context()))
	require.Equal(t, 90*time.Second, saw.last().Sharding.PassivateAfter)
	require.Equal(t, "warn", saw.last().Log.Level, "the flags lie over the instance")
	flags.err = errors.New("the store is gone")
	require.ErrorContains(t, node.Reload(t.Context()), "flags: the store is gone")
	flags.err = nil
	require.NoError(t, k.Set("membership.nothing", 9))
	require.ErrorContains(t, node.Reload(t.Context()), `koanf: membership.nothing: unknown key`)
	_, err = cluster.Load(cluster.WithConfig(cluster.Default()), cluster.WithKoanf(k))
	require.ErrorContains(t, err, `both WithConfig and the provider "koanf" were given`)
}

// flagsOfTest is a provider.
type flagsOfTest struct {
	tree map[string]any
	err  error
}

func (*flagsOfTest) ReadBytes() ([]byte, error)      { return nil, errors.ErrUnsupported }
func (f *flagsOfTest) Read() (map[string]any, error) { return f.tree, f.err }

// Settings have the same faults in a file, in a provider and in an instance of koanf, for [cluster.Check] and for
// [cluster.Start].
func TestEachWayOfConfiguringHasTheSameFaults(t *testing.T) {
	t.Parallel()
	for name, tree := range map[string]map[string]any{
		"no name":          {"node": map[string]any{"address": "127.0.0.1:7946"}},
		"unknown section":  {"cluster": map[string]any{"name": "x"}, "nodes": 1},
		"a wrong strategy": {"cluster": map[string]any{"name": "x"}, "node": map[string]any{"address": "127.0.0.1:7946"}, "downing": map[string]any{"strategy": "keep-magority"}},
		"out of range":     {"cluster": map[string]any{"name": "x"}, "node": map[string]any{"address": "127.0.0.1:7946"}, "sharding": map[string]any{"mailbox-size": -1}},
		"another type":     {"cluster": map[string]any{"name": "x"}, "node": map[string]any{"address": "127.0.0.1:7946"}, "membership": map[string]any{"gossip-interval": true, "seed-nodes": map[string]any{"a": 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(tree)
			require.NoError(t, err)
			path := filepath.Join(t.TempDir(), "cluster.json")
			require.NoError(t, os.WriteFile(path, text, 0o600))
			k := koanf.New(".")
			require.NoError(t, k.Load(confmap.Provider(tree, ""), nil))
			want := faultsOf(t, cluster.Check(cluster.Extensions{}, path))
			for way, option := range map[string]cluster.Option{
				"a file":      cluster.WithFile(path),
				"a provider":  cluster.WithProvider("flags", &flagsOfTest{tree: tree}, nil),
				"an instance": cluster.WithKoanf(k),
			} {
				_, err := cluster.Start(t.Context(), quiet(option)...)
				require.Equal(t, want, faultsOf(t, err), way)
				if way != "a file" {
					require.Equal(t, want, faultsOf(t, cluster.Check(cluster.Extensions{Options: []cluster.Option{option}})), way)
				}
			}
		})
	}
}

// faultsOf returns the faults of an error without their places.
func faultsOf(t *testing.T, err error) string {
	t.Helper()
	faults, ok := errors.AsType[config.Errors](err)
	require.True(t, ok, "%v", err)
	all := make([]string, 0, len(faults))
	for _, f := range faults {
		all = append(all, fmt.Sprintln(f.Key, f.Reason, f.Nearest))
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

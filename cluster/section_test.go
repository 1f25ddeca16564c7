// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/membership"
)

// A section of the program in the file of a node (twins): how it is filled and refused,
// reloaded by functions or not at all, and compared between members. The last test is of a
// node that cannot start.

// twins is a section of a program.
type twins struct {
	Repeat time.Duration `koanf:"repeat" reload:"yes"`
	Names  []string      `koanf:"names" reload:"yes"`
	Most   int           `koanf:"most"`
}

// Validate refuses less than one twin.
func (t *twins) Validate() error {
	if t.Most < 1 {
		return errors.New("most: must be at least 1")
	}
	return nil
}

// Compared says that all nodes have the same number.
func (t *twins) Compared() []membership.Setting {
	return []membership.Setting{{Key: "most", Value: fmt.Sprint(t.Most), MustEqual: true}}
}

// defaultTwins returns the defaults of the section.
func defaultTwins() twins { return twins{Repeat: time.Second, Names: []string{"a"}, Most: 3} }

// A section of the program is filled from the file and the environment over its
// defaults, before the node starts.
func TestASectionOfTheProgramIsFilled(t *testing.T) {
	t.Setenv("QUORATE_TWINS__MOST", "7")
	path, _ := lone(t, "twins: {names: [x, y]}")
	mine := defaultTwins()
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithSection("twins", &mine))...)
	require.NoError(t, err)
	require.Equal(t, twins{Repeat: time.Second, Names: []string{"x", "y"}, Most: 7}, mine)
	require.NoError(t, node.Close())
}

// oddTwins is a section whose method Compared is not the one that is asked for.
type oddTwins struct{ Most int }

// Compared has no settings.
func (*oddTwins) Compared() []string { return nil }

// A section with a method Compared that would never be called is refused.
func TestASectionWithAnotherSignatureIsRefused(t *testing.T) {
	path, _ := lone(t, "")
	_, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithSection("twins", new(oddTwins)))...)
	require.ErrorContains(t, err, "method Compared of *cluster_test.oddTwins is a func() []string")
}

// The faults of the section come with those of all others, and nothing is filled.
func TestASectionOfTheProgramIsStrict(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"unknown key":              {"twins: {repaet: 1s}", `cluster.yaml:4: twins.repaet: unknown key; did you mean "repeat"?`},
		"bad value":                {"twins: {repeat: soon}", "cluster.yaml:4: twins.repeat: "},
		"refused value":            {"twins: {most: 0}", "cluster.yaml:4: twins: most: must be at least 1"},
		"unknown section":          {"twinz: {}", `cluster.yaml:4: twinz: unknown section; did you mean "twins"?`},
		"fault of another section": {"sharding: {mailbox-size: 0}", "cluster.yaml:4: sharding.mailbox-size: "},
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := lone(t, test.line)
			mine := defaultTwins()
			_, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithSection("twins", &mine))...)
			var faults config.Errors
			require.ErrorAs(t, err, &faults)
			require.ErrorContains(t, err, test.want)
			require.Equal(t, defaultTwins(), mine)
		})
	}
	t.Setenv("QUORATE_TWINS__MOST", "none")
	path, _ := lone(t)
	_, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithSection("twins", new(twins)))...)
	require.ErrorContains(t, err, "$QUORATE_TWINS__MOST: twins.most: ")
}

// A section that the program declares wrongly is an error of the start. So is a value that
// Validate refuses, also without a file.
func TestASectionThatCannotBeIsRefused(t *testing.T) {
	path, _ := lone(t)
	mine := defaultTwins()
	number := 3
	for want, opts := range map[string][]cluster.Option{
		`two sections with the name "sharding"`:                           {cluster.WithSection("sharding", &mine)},
		`two sections with the name "twins"`:                              {cluster.WithSection("twins", &mine), cluster.WithSection("twins", &mine)},
		`"Twins" cannot be the name`:                                      {cluster.WithSection("Twins", &mine)},
		`"twins" needs a pointer to a struct with its defaults, not *int`: {cluster.WithSection("twins", &number)},
		`"twins" needs a pointer to a struct`:                             {cluster.WithSection[twins]("twins", nil)},
	} {
		_, err := cluster.Start(t.Context(), quiet(append(opts, cluster.WithFile(path))...)...)
		require.ErrorContains(t, err, want)
	}
	cfg := cluster.Default()
	cfg.Cluster.Name, cfg.Node.Address = "test", free(t)
	_, err := cluster.Start(t.Context(), quiet(cluster.WithConfig(cfg), cluster.WithSection("twins", new(twins)))...)
	require.ErrorContains(t, err, "twins: most: must be at least 1")
}

// A section of the program is reloaded with all others, whole or not at all.
func TestASectionOfTheProgramIsReloaded(t *testing.T) {
	t.Parallel()
	type change struct{ from, to twins }
	var committed []change
	discarded, refuse := 0, error(nil)
	mine := defaultTwins()
	var saw []string
	other := newPart("other", &saw)
	node, _, write := changeable(t, false, cluster.WithReload(other.prepare),
		cluster.WithSection("twins", &mine, func(_ context.Context, from, to twins) (cluster.Prepared, error) {
			return cluster.Prepared{
				Commit: func() { committed = append(committed, change{from, to}) }, Discard: func() { discarded++ },
			}, refuse
		}))
	second := defaultTwins()
	second.Repeat = time.Minute
	write("twins: {repeat: 1m}")
	require.NoError(t, node.Reload(t.Context()))
	require.Equal(t, []change{{defaultTwins(), second}}, committed)
	require.Equal(t, defaultTwins(), mine, "the struct is the program's")

	write("twins: {repeat: 2m, most: 4}", "transport: {linger: 1s}")
	var restart *cluster.RestartError
	require.ErrorAs(t, node.Reload(t.Context()), &restart)
	require.Equal(t, []string{"transport.linger", "twins.most"}, restart.Keys)
	write("twins: {repeta: 2m}")
	require.ErrorContains(t, node.Reload(t.Context()), `:5: twins.repeta: unknown key; did you mean "repeat"?`)

	saw, refuse = nil, errors.New("no twins today")
	write("twins: {repeat: 2m}")
	require.ErrorIs(t, node.Reload(t.Context()), refuse)
	require.Empty(t, saw, "sections come before the other parts of the program")
	other.fails, refuse = errors.New("no room"), nil
	require.ErrorIs(t, node.Reload(t.Context()), other.fails)
	require.Equal(t, 1, discarded)
	require.Len(t, committed, 1)

	other.fails = nil
	write("sharding: {stuck-after: 5m}", "twins: {repeat: 1m}")
	require.NoError(t, node.Reload(t.Context()))
	require.Len(t, committed, 1, "nothing in the section has changed")
	write()
	require.NoError(t, node.Reload(t.Context()))
	require.Equal(t, change{second, defaultTwins()}, committed[1], "what is gone from the file has its default again")
}

// Of several functions of one section all prepare, or none commits.
func TestFunctionsOfASectionGoTogether(t *testing.T) {
	t.Parallel()
	var saw []string
	note := func(what string, fails *error) func(context.Context, twins, twins) (cluster.Prepared, error) {
		return func(context.Context, twins, twins) (cluster.Prepared, error) {
			return cluster.Prepared{
				Commit: func() { saw = append(saw, what+" commits") }, Discard: func() { saw = append(saw, what+" discards") },
			}, *fails
		}
	}
	var first, second error
	mine := defaultTwins()
	node, _, write := changeable(t, false, cluster.WithSection("twins", &mine, note("first", &first), note("second", &second)))
	second = errors.New("not now")
	write("twins: {repeat: 2m}")
	require.ErrorIs(t, node.Reload(t.Context()), second)
	second = nil
	require.NoError(t, node.Reload(t.Context()))
	require.Equal(t, []string{"first discards", "first commits", "second commits"}, saw)
}

// Without a function nothing in a section may change, since no code would take the change
// over.
func TestASectionThatNobodyTakesOverNeedsARestart(t *testing.T) {
	t.Parallel()
	mine := defaultTwins()
	node, _, write := changeable(t, false, cluster.WithSection("twins", &mine))
	write("twins: {repeat: 1m}")
	var restart *cluster.RestartError
	require.ErrorAs(t, node.Reload(t.Context()), &restart)
	require.Equal(t, []string{"twins.repeat"}, restart.Keys)
}

// Members compare the settings that a section names, under their whole keys.
func TestMembersCompareSettingsOfASection(t *testing.T) {
	start := func(path, most string) (*cluster.Node, error) {
		t.Setenv("QUORATE_TWINS__MOST", most)
		mine := defaultTwins()
		return cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithSection("twins", &mine))...)
	}
	path, address := lone(t)
	first, err := start(path, "4")
	require.NoError(t, err)
	defer func() { require.NoError(t, first.Close()) }()
	require.NoError(t, first.AwaitUp(t.Context()))
	second, err := start(file(t, "cluster: {name: test}", "node: {address: "+free(t)+"}", "membership: {seed-nodes: ["+address+"]}"), "5")
	if err == nil { // The refusal may also come while the later parts start.
		<-second.Done()
		err = second.Err()
		_ = second.Close()
	}
	require.ErrorIs(t, err, membership.ErrRefused)
	require.ErrorContains(t, err, `twins.most is "4" in the cluster and "5" here`)
}

// When a part cannot start, those that have started are stopped: the next start of the
// same node finds its port free.
func TestANodeThatCannotStartLeavesNothing(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	path, _ := lone(t)
	busy := cluster.WithChange(func(c *cluster.Config) { c.Management.Address = taken.Addr().String() })
	_, err = cluster.Start(t.Context(), quiet(cluster.WithFile(path), busy)...)
	require.ErrorContains(t, err, taken.Addr().String())
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.NoError(t, err)
	require.NoError(t, node.Close())
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/internal/patience"
)

// Watching real files. After what the tests share come the ways in which a file changes,
// many writes at once, exchanged directories and links; last what a watch begins with.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// report is one call of notify.
type report struct {
	name string // The setting node.name, which stands for the content.
	err  error
}

// watched loads a file, and returns its reports from then on.
func watched(t *testing.T, path string) <-chan report {
	t.Helper()
	file, err := config.Loader{}.Load(path)
	require.NoError(t, err)
	reports := make(chan report, 100)
	w, err := file.Watch(func(f *config.File, err error) {
		if err != nil {
			reports <- report{err: err}
			return
		}
		got := defaults()
		reports <- report{name: func() string { _ = f.Decode("", &got); return got.Node.Name }()}
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, w.Close())
		require.NoError(t, w.Close(), "again")
	})
	return reports
}

// named waits until a name is reported, and returns the number of reports until then.
func named(t *testing.T, reports <-chan report, name string) int {
	t.Helper()
	for n := 1; ; n++ {
		if r := patience.Receive(t, reports, "a report of %q", name); r.err == nil && r.name == name {
			return n
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func text(name string) string { return "node: {name: " + name + "}\n" }

// covers F55.
func TestWatchReportsEachWayOfChangingAFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c.yaml")
	put(t, path, text("a"))
	reports := watched(t, path)

	put(t, path, text("b"))
	require.Equal(t, 1, named(t, reports, "b"), "written in place")

	put(t, path+".tmp", text("c"))
	require.NoError(t, os.Rename(path+".tmp", path))
	require.Equal(t, 1, named(t, reports, "c"), "replaced by renaming")

	put(t, path, "node: {name: [half")
	require.ErrorContains(t, patience.Receive(t, reports, "the fault").err, "c.yaml:1: not valid YAML")
	put(t, path, text("c"))
	require.Equal(t, 1, named(t, reports, "c"), "good again, and reported although it is as before")

	require.NoError(t, os.Remove(path))
	require.ErrorContains(t, patience.Receive(t, reports, "the end of the file").err, "no such file")
	put(t, path, text("d"))
	require.Equal(t, 1, named(t, reports, "d"))

	put(t, filepath.Join(dir, "base.yaml"), "node: {weight: 3}\n")
	put(t, path, "include: [base.yaml]\n"+text("e"))
	require.Equal(t, 1, named(t, reports, "e"))
	put(t, filepath.Join(dir, "base.yaml"), "node: {weight: 300}\n")
	require.NoError(t, patience.Receive(t, reports, "the change of the included file").err, "an included file is followed; what it means is not the Watcher's affair")
}

// A thousand writes cause few reports, the last of which has the last write; writes to
// other files of the directory cause none.
// covers F55.
func TestStormOfWritesIsAFewReports(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c.yaml")
	put(t, path, text("start"))
	reports := watched(t, path)
	for i := range 1000 {
		put(t, filepath.Join(dir, "other"), fmt.Sprint(i))
		put(t, path+".tmp", text(fmt.Sprintf("n%d", i)))
		require.NoError(t, os.Rename(path+".tmp", path))
	}
	require.LessOrEqual(t, named(t, reports, "n999"), 20)
	put(t, filepath.Join(dir, "other"), "again")
	put(t, path, text("n999"))
	put(t, path, text("end"))
	require.Equal(t, 1, named(t, reports, "end"), "the same content is no change")
}

// A directory is followed that is replaced as Kubernetes replaces a mounted one. covers F55.
func TestExchangedDirectoryIsFollowed(t *testing.T) {
	dir := t.TempDir()
	version := func(n int) {
		at := fmt.Sprintf("..v%d", n)
		require.NoError(t, os.Mkdir(filepath.Join(dir, at), 0o700))
		put(t, filepath.Join(dir, at, "c.yaml"), "include: [a.yaml]\n"+text(fmt.Sprintf("v%d", n)))
		put(t, filepath.Join(dir, at, "a.yaml"), "node: {weight: 1}\n")
		require.NoError(t, os.Symlink(at, filepath.Join(dir, "..tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
	}
	version(0)
	for _, name := range []string{"a.yaml", "c.yaml"} {
		require.NoError(t, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
	reports := watched(t, filepath.Join(dir, "c.yaml"))
	for n := 1; n <= 3; n++ {
		version(n)
		require.NoError(t, os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..v%d", n-1))))
		named(t, reports, fmt.Sprintf("v%d", n))
	}
}

// For a link to another directory, the directory of its target is watched too.
func TestTargetOfALinkIsFollowed(t *testing.T) {
	target := filepath.Join(t.TempDir(), "real.yaml")
	put(t, target, text("a"))
	link := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.Symlink(target, link))
	reports := watched(t, link)
	put(t, target, text("b"))
	require.Equal(t, 1, named(t, reports, "b"))
}

// A change between loading and watching is not missed.
func TestChangeBeforeTheWatchIsReported(t *testing.T) {
	path := write(t, "c.yaml", text("a"))
	file, err := config.Loader{}.Load(path)
	require.NoError(t, err)
	put(t, path, text("b"))
	reports := make(chan report, 10)
	w, err := file.Watch(func(*config.File, error) { reports <- report{name: "b"} })
	require.NoError(t, err)
	defer w.Close() //nolint:errcheck // Close never fails.
	require.Equal(t, 1, named(t, reports, "b"))
}

func TestParsedTextCannotBeWatched(t *testing.T) {
	file, err := config.Parse("c", []byte(text("a")))
	require.NoError(t, err)
	_, err = file.Watch(nil)
	require.ErrorIs(t, err, config.ErrRead)
}

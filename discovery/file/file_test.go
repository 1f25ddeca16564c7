// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/discoverytest"
	"github.com/quorate/quorate/discovery/file"
)

// First the conformance suite and the form of the file, then what is no list, then how changes
// are seen and writers waited for, and in the end the settings.

// settings are those of a file that is in a directory of the test.
func settings(t testing.TB) file.Config {
	t.Helper()
	config := file.Default()
	config.Path = filepath.Join(t.TempDir(), "nodes")
	return config
}

func newFile(t testing.TB, config file.Config) *file.Discovery {
	t.Helper()
	d, err := file.New(config)
	require.NoError(t, err)
	return d
}

func write(t testing.TB, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

// rename writes content as the documentation says: beside the file, and then in its place.
func rename(t testing.TB, path, content string) {
	t.Helper()
	write(t, path+".new", content)
	require.NoError(t, os.Rename(path+".new", path))
}

func hosts(t testing.TB, d *file.Discovery) string {
	t.Helper()
	found, err := d.Lookup(t.Context(), discovery.Query{})
	require.NoError(t, err)
	var text []string
	for _, target := range found.List {
		text = append(text, target.String())
	}
	return strings.Join(text, " ")
}

func numbered(n int) string {
	text := "# nodes\n"
	for i := range n {
		text += fmt.Sprintf("node-%d:7946\n", i)
	}
	return text
}

func TestFileKeepsTheContract(t *testing.T) {
	discoverytest.TestSource(t, discoverytest.Source{
		Holding: func(t testing.TB, n int) discovery.Discovery {
			t.Helper()
			config := settings(t)
			config.Settle = time.Millisecond
			write(t, config.Path, numbered(n))
			return newFile(t, config)
		},
		Failing: func(t testing.TB) discovery.Discovery {
			t.Helper()
			return newFile(t, settings(t))
		},
		// A file that never comes to rest answers as little as a server that is silent.
		Silent: func(t testing.TB) discovery.Discovery {
			t.Helper()
			config := settings(t)
			config.Settle = 10 * time.Second
			write(t, config.Path, numbered(1))
			return newFile(t, config)
		},
	})
}

func TestFileIsReadAsPeopleWriteIt(t *testing.T) {
	config := settings(t)
	write(t, config.Path, "\xef\xbb\xbf# the bank\r\n\r\n  Node-1.Example:7946\r\n10.0.0.2:1 # cellar\n"+
		"[fd00::3]:7946#x\n\t10.0.0.2:1\n")
	require.Equal(t, "node-1.example:7946 10.0.0.2:1 [fd00::3]:7946", hosts(t, newFile(t, config)))
}

// A path that leads to something else than a list is an error: an empty answer would say that
// there are no contact points.
//
// covers B55, see docs/verification.md.
func TestWhatIsNoListIsAnError(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		make       func(t *testing.T, path string)
	}{
		{"missing", "no such file", func(*testing.T, string) {}},
		{"empty", "write a comment", func(t *testing.T, path string) { write(t, path, "") }},
		{"byte order mark alone", "write a comment", func(t *testing.T, path string) { write(t, path, "\xef\xbb\xbf") }},
		{"cut off", "does not end", func(t *testing.T, path string) { write(t, path, "node-1:7946\nnode-2:79") }},
		{"bad lines", "line 2: ", func(t *testing.T, path string) { write(t, path, "a:1\nb\nc:99999\n") }},
		{"without ports", "no port", func(t *testing.T, path string) { write(t, path, "10.0.0.1\n") }},
		{"binary", "line 1: ", func(t *testing.T, path string) { write(t, path, "\x00\xff\n") }},
		{"one line without end", "line 1: ", func(t *testing.T, path string) {
			write(t, path, strings.Repeat("a", 1<<20)+"\n")
		}},
		{"directory", "regular file", func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }},
		{"device", "regular file", func(t *testing.T, path string) { require.NoError(t, os.Symlink(os.DevNull, path)) }},
		{"link in a circle", "too many", func(t *testing.T, path string) { require.NoError(t, os.Symlink(path, path)) }},
		{"link to nothing", "no such file", func(t *testing.T, path string) { require.NoError(t, os.Symlink(path+"x", path)) }},
		{"huge", "more than 4194304 bytes", func(t *testing.T, path string) {
			write(t, path, "")
			require.NoError(t, os.Truncate(path, 1<<30))
		}},
		{"too many", "more than 10000", func(t *testing.T, path string) { write(t, path, numbered(10_001)) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			config := settings(t)
			config.Settle = 0
			tc.make(t, config.Path)
			found, err := newFile(t, config).Lookup(t.Context(), discovery.Query{})
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, config.Path)
			require.Empty(t, found.List)
			require.Less(t, len(err.Error()), 2000)
		})
	}
}

func TestErrorsCanBeAskedFor(t *testing.T) {
	config := settings(t)
	config.Settle = 0
	d := newFile(t, config)
	_, err := d.Lookup(t.Context(), discovery.Query{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	write(t, config.Path, strings.Repeat("bad\n", 1000))
	_, err = d.Lookup(t.Context(), discovery.Query{})
	require.ErrorIs(t, err, discovery.ErrBadTarget)
	require.ErrorContains(t, err, "line 10: ")
	require.NotContains(t, err.Error(), "line 11: ")
}

// In virtual time the pauses are exact.
func TestChangeIsSeenAfterTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := settings(t)
		write(t, config.Path, "a:1\n")
		d := newFile(t, config)
		begun := time.Now()
		require.Equal(t, "a:1", hosts(t, d))
		require.Equal(t, config.Settle, time.Since(begun), "as long as it must stay")
		rename(t, config.Path, "b:1\n")
		for _, after := range []time.Duration{0, config.Interval - 1} {
			<-time.After(after)
			require.Equal(t, "a:1", hosts(t, d))
		}
		<-time.After(1)
		changed := time.Now()
		require.Equal(t, "b:1", hosts(t, d))
		require.Equal(t, config.Settle, time.Since(changed))
		<-time.After(config.Interval)
		begun = time.Now()
		require.Equal(t, "b:1", hosts(t, d))
		require.Zero(t, time.Since(begun), "what has not changed has settled")
	})
}

func TestAnswerSaysHowLongItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := settings(t)
		write(t, config.Path, "a:1\n")
		d := newFile(t, config)
		for _, want := range []time.Duration{time.Second, 700 * time.Millisecond, 400 * time.Millisecond} {
			found, err := d.Lookup(t.Context(), discovery.Query{})
			require.NoError(t, err)
			require.Equal(t, want, found.TTL)
			require.Equal(t, config.Path+" lists 1", found.Reason)
			<-time.After(300 * time.Millisecond)
		}
	})
}

// A list is written in place, slowly, and its first half is a valid list.
func TestFileThatIsBeingWrittenIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := settings(t)
		write(t, config.Path, "a:1\n")
		d := newFile(t, config)
		require.Equal(t, "a:1", hosts(t, d))
		<-time.After(config.Interval)
		var writing sync.WaitGroup
		write(t, config.Path, "b:1\n")
		writing.Go(func() {
			for _, more := range []string{"b:1\nc:1\n", "b:1\nc:1\nd:1\n"} {
				<-time.After(config.Settle - 1)
				if err := os.WriteFile(config.Path, []byte(more), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
		require.Equal(t, "b:1 c:1 d:1", hosts(t, d))
		writing.Wait()
	})
}

// A lookup also waits for a writer that begins by emptying the file, the first lookup like any
// other.
func TestEmptyFileIsWaitedForAsAnyOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := settings(t)
		write(t, config.Path, "")
		var writing sync.WaitGroup
		writing.Go(func() {
			<-time.After(config.Settle / 2)
			if err := os.WriteFile(config.Path, []byte("a:1\n"), 0o600); err != nil {
				t.Error(err)
			}
		})
		require.Equal(t, "a:1", hosts(t, newFile(t, config)))
		writing.Wait()
	})
}

func TestFileThatNeverComesToRestIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := settings(t)
		write(t, config.Path, "a:1\n")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		var writing sync.WaitGroup
		writing.Go(func() {
			<-time.After(config.Settle / 2) // From now on in the middle of two reads.
			for i := 2; ctx.Err() == nil; i++ {
				if err := os.WriteFile(config.Path, fmt.Appendf(nil, "a:%d\n", i), 0o600); err != nil {
					t.Error(err)
				}
				<-time.After(config.Settle)
			}
		})
		_, err := newFile(t, config).Lookup(ctx, discovery.Query{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "it changes")
		writing.Wait()
	})
}

// A file that vanishes for a moment, or gets a bad line, is an error and not the answer of
// before. The next lookup sees that all is well again.
func TestErrorPassesWithItsCause(t *testing.T) {
	config := settings(t)
	config.Interval, config.Settle = 0, 0
	d := newFile(t, config)
	write(t, config.Path, "a:1\n")
	require.Equal(t, "a:1", hosts(t, d))
	for _, spoil := range []func(){
		func() { require.NoError(t, os.Remove(config.Path)) },
		func() { write(t, config.Path, "a:1\nb") },
		func() { write(t, config.Path, "") },
	} {
		spoil()
		_, err := d.Lookup(t.Context(), discovery.Query{})
		require.Error(t, err)
		write(t, config.Path, "a:1\n")
		require.Equal(t, "a:1", hosts(t, d))
	}
	write(t, config.Path, "# nobody\n")
	require.Empty(t, hosts(t, d))
}

// A change that leaves the size and the time of the file as they were is seen too.
func TestChangeIsSeenByItsContent(t *testing.T) {
	config := settings(t)
	config.Interval, config.Settle = 0, 0
	d := newFile(t, config)
	for _, content := range []string{"a:1\n", "b:1\n"} {
		write(t, config.Path, content)
		require.NoError(t, os.Chtimes(config.Path, time.Unix(1, 0), time.Unix(1, 0)))
		require.Equal(t, content[:3], hosts(t, d))
	}
}

// A mounted config map is exchanged like this: the file is a link through a link to a
// directory, and that link is replaced by a rename. Each lookup sees one version or the other.
func TestLinkIsExchangedWhileItIsRead(t *testing.T) {
	dir := t.TempDir()
	versions := []string{"a:1\nb:1\n", "c:1\nd:1\n"}
	for i, content := range versions {
		require.NoError(t, os.Mkdir(filepath.Join(dir, fmt.Sprintf("..v%d", i)), 0o700))
		write(t, filepath.Join(dir, fmt.Sprintf("..v%d", i), "nodes"), content)
	}
	swap := func(i int) error {
		if err := os.Symlink(fmt.Sprintf("..v%d", i), filepath.Join(dir, "..tmp")); err != nil {
			return err
		}
		return os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data"))
	}
	require.NoError(t, swap(0))
	require.NoError(t, os.Symlink(filepath.Join("..data", "nodes"), filepath.Join(dir, "nodes")))
	d := newFile(t, file.Config{Path: filepath.Join(dir, "nodes")})
	var swapping sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	swapping.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if err := swap(i % 2); err != nil {
				t.Error(err)
			}
		}
	})
	seen := map[string]bool{}
	for range 100_000 {
		seen[hosts(t, d)] = true
		if len(seen) == 2 {
			break
		}
	}
	cancel()
	swapping.Wait()
	require.Equal(t, map[string]bool{"a:1 b:1": true, "c:1 d:1": true}, seen)
}

func TestConfigReportsEachFaultAtItsKey(t *testing.T) {
	_, err := file.New(file.Config{Interval: -1, Settle: time.Minute})
	faults := field.Parts(err)
	require.Len(t, faults, 3)
	for i, want := range []string{"path", "interval", "settle"} {
		key, reason := field.Of(faults[i])
		require.Equal(t, want, key)
		require.NotEmpty(t, reason)
	}
	config := file.Default()
	require.ErrorContains(t, config.Validate(), "path: none given", "the section is looked at where the method is selected, and then needs one")
	config.Path, config.Interval = "nodes", 2*time.Hour
	require.ErrorContains(t, config.Validate(), "interval: 2h0m0s")
}

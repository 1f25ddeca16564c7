// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the directory of the whole tree.
const root = ".."

// firstGoBlock returns the first Go program of the root README.
func firstGoBlock(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n```go\n")
	require.True(t, found, "README.md has no Go block")
	block, _, found := strings.Cut(rest, "\n```\n")
	require.True(t, found, "the Go block of README.md has no end")
	return block + "\n"
}

// TestTheProgramOfTheReadmeIsShort bounds the first program of the README to forty lines.
func TestTheProgramOfTheReadmeIsShort(t *testing.T) {
	block := firstGoBlock(t)
	require.LessOrEqual(t, strings.Count(block, "\n"), 40)
	require.Contains(t, block, "package main")
}

// link is an inline link of Markdown; the target is the first group.
var link = regexp.MustCompile(`\]\(([^()\s]+)(?:\s+"[^"]*")?\)`)

// relativeLinks returns the targets of links in a text that are files of the tree, without
// their fragments. What looks like a link in code is none.
func relativeLinks(markdown string) []string {
	var targets []string
	code := false
	for line := range strings.Lines(markdown) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		if code || strings.HasPrefix(line, "    ") {
			continue
		}
		for _, match := range link.FindAllStringSubmatch(withoutCode(line), -1) {
			target, err := url.Parse(match[1])
			if err == nil && target.Scheme == "" && target.Host == "" && target.Path != "" {
				targets = append(targets, target.Path)
			}
		}
	}
	return targets
}

// withoutCode takes what stands between backquotes out of a line.
func withoutCode(line string) string {
	parts := strings.Split(line, "`")
	var text strings.Builder
	for i := 0; i < len(parts); i += 2 {
		text.WriteString(parts[i])
	}
	return text.String()
}

// elsewhere are folders whose files are not the project's, or not documents. The packages of a page may be
// installed at any moment, also while this test runs.
var elsewhere = []string{"bin", "testdata", "node_modules"}

// TestRelativeLinksExist follows every relative link in every Markdown file of
// the tree.
func TestRelativeLinksExist(t *testing.T) {
	files, links := 0, 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || slices.Contains(elsewhere, name)) {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, target := range relativeLinks(string(text)) {
			links++
			_, err := os.Stat(filepath.Join(filepath.Dir(path), filepath.FromSlash(target)))
			require.NoError(t, err, "%s links to %s", path, target)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, files, 10, "the tree is not where the test looks for it")
	require.Greater(t, links, 20)
}

// TestLinksAreFound shows what counts as a relative link.
func TestLinksAreFound(t *testing.T) {
	text := "[a](b.md) and [c](d/e#f \"title\"), `[no](code)`\n" +
		"[web](https://example.org/x) [here](#there) ![image](i.png)\n" +
		"```go\n[no](block)\n```\n    [no](indented)\n[last](../z)\n"
	require.Equal(t, []string{"b.md", "d/e", "i.png", "../z"}, relativeLinks(text))
}

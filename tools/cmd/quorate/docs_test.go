// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/tools/internal/command"
)

// Every block of YAML on the pages about discovery is valid in the configuration of a node.
// For each method some block selects the method and has its section, and check names the
// module that a program must link for it.
func TestTheFilesOnThePagesAboutDiscoveryAreRight(t *testing.T) {
	needed := map[string]bool{}
	for page, least := range map[string]int{"discovery.md": 8, "discovery-kubernetes.md": 1, "bootstrap.md": 1} {
		blocks := filesOn(t, page)
		require.GreaterOrEqual(t, len(blocks), least, "%s has lost blocks of YAML", page)
		for _, block := range blocks {
			for _, n := range checkBlock(t, block) {
				_, after, _ := strings.Cut(n.Reason, "github.com/quorate/quorate/discovery/")
				name, _, _ := strings.Cut(after, ",")
				needed[name] = needed[name] || strings.Contains(block, "discovery-"+name+":")
			}
		}
	}
	for _, name := range methodNames(t) {
		require.True(t, needed[name], "no YAML on docs/discovery.md selects %[1]s and has a section discovery-%[1]s: add one", name)
	}
}

// Every block of YAML on the page about replicated data is valid in the configuration of a node,
// and check names the store that a program must link for it. One block has each setting that is
// off by default.
func TestTheFilesOnThePageAboutDataAreRight(t *testing.T) {
	blocks := filesOn(t, "ddata.md")
	for _, key := range []string{"durable:", "write-behind:"} {
		require.True(t, slices.ContainsFunc(blocks, func(b string) bool { return strings.Contains(b, key) }), "no block has %s", key)
	}
	for _, block := range blocks {
		needs := checkBlock(t, block)
		require.Len(t, needs, 1, block)
		require.Contains(t, needs[0].Reason, "import github.com/quorate/quorate/ddata/durable,", block)
	}
}

// Every block of YAML on the page about downing is valid in the configuration of a node, and check
// names the stores of leases that a program must link.
func TestTheFilesOnThePageAboutDowningAreRight(t *testing.T) {
	blocks := filesOn(t, "downing.md")
	require.GreaterOrEqual(t, len(blocks), 3)
	linked := 0
	for _, block := range blocks {
		for _, n := range checkBlock(t, block) {
			require.Contains(t, n.Reason, "import github.com/quorate/quorate/downing/lease/etcd,", block)
			linked++
		}
	}
	require.Positive(t, linked)
}

// Every block of YAML on any other page, and in the READMEs, is valid in the configuration of a node.
func TestTheFilesOnAllPagesAreRight(t *testing.T) {
	count := 0
	for _, page := range pages(t) {
		for _, block := range filesOn(t, page) {
			if !strings.Contains(block, "sha256:") { // Then the page goes on with quorate plugin pin.
				block = strings.ReplaceAll(block, "    path:", "    unpinned: true\n    path:")
			}
			t.Run(page, func(t *testing.T) { _ = checkBlock(t, block) })
			count++
		}
	}
	require.GreaterOrEqual(t, count, 30)
}

// Every command line on the pages, and in the READMEs, is one of a command that there is, with flags that it has.
func TestTheCommandLinesOnAllPagesAreRight(t *testing.T) {
	count, known := 0, map[string][]string{}
	offered := func(words ...string) []string {
		key := strings.Join(words, " ")
		if known[key] == nil {
			known[key] = offered(words)
		}
		return known[key]
	}
	for _, page := range pages(t) {
		for _, line := range commandLinesOn(t, page) {
			words := strings.Fields(afterCommand.ReplaceAllString(line, ""))
			var at []string
			for len(words) > 0 && slices.Contains(offered(append(at, "")...), words[0]) {
				at, words = append(at, words[0]), words[1:]
			}
			require.NotEmpty(t, at, "%s: quorate %s", page, line)
			flags := offered(append(at, "-")...)
			for _, word := range words {
				if flag := longFlag.FindStringSubmatch(word); flag != nil {
					require.Contains(t, flags, "--"+flag[1], "%s: quorate %s", page, line)
				}
			}
			count++
		}
	}
	require.GreaterOrEqual(t, count, 150)
}

var (
	fenced       = regexp.MustCompile("(?s)```.*?\n```")
	fencedLine   = regexp.MustCompile(`(?m)^ *(?:\$ )?quorate (\S.*)$`)
	indentedLine = regexp.MustCompile(`(?m)^    (?:\$ )?quorate (\S.*)$`)
	inText       = regexp.MustCompile("`quorate (\\S[^`]*)`")
	brokenLine   = regexp.MustCompile(`\\?\n *`)
	afterCommand = regexp.MustCompile(`\s(?:[#|>]|&&).*$`)
	longFlag     = regexp.MustCompile(`^--?([a-z][a-z0-9-]+)`)
)

// commandLinesOn returns what follows the name of this program in the blocks and in the text of a page, wherever its
// lines are broken.
func commandLinesOn(t *testing.T, page string) (all []string) {
	t.Helper()
	bytes, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", page))
	require.NoError(t, err)
	text := strings.ReplaceAll(string(bytes), "\r\n", "\n")
	for _, block := range fenced.FindAllString(text, -1) {
		all = append(all, found(fencedLine, strings.ReplaceAll(block, "\\\n", " "))...)
	}
	text = fenced.ReplaceAllString(text, "")
	all = append(all, found(indentedLine, text)...)
	return append(all, found(inText, brokenLine.ReplaceAllString(text, " "))...)
}

// found returns what the group of a pattern matches in a text.
func found(pattern *regexp.Regexp, text string) (all []string) {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// offered returns the words that may stand in place of the last one, as the shell is told.
func offered(words []string) []string {
	var said strings.Builder
	_ = program().Run(append([]string{"__complete"}, words...), &said, &said)
	return strings.Fields(said.String())
}

// pages returns the paths of all pages, from the directory docs.
func pages(t *testing.T) (all []string) {
	t.Helper()
	docs := filepath.Join("..", "..", "..", "docs")
	for _, pattern := range []string{"*.md", "../*.md", "../*/README.md"} {
		found, err := filepath.Glob(filepath.Join(docs, pattern))
		require.NoError(t, err)
		for _, path := range found {
			page, err := filepath.Rel(docs, path)
			require.NoError(t, err)
			all = append(all, page)
		}
	}
	return all
}

// checkBlock checks a block of YAML over the least that every node is told, and returns what a
// program must link for the block.
func checkBlock(t *testing.T, block string) config.Errors {
	t.Helper()
	dir := t.TempDir()
	rest, path := filepath.Join(dir, "rest.yaml"), filepath.Join(dir, "block.yaml")
	require.NoError(t, os.WriteFile(rest, []byte("cluster: {name: bank}\nnode: {address: 10.0.0.7:7946}\ntransport: {allow-insecure: true}\n"), 0o600))
	block = provided(t, dir, block)
	require.NoError(t, os.WriteFile(path, []byte(block), 0o600))
	for _, files := range certificates.FindAllStringSubmatch(block, -1) {
		host := "10.0.0.7"
		if address := addresses.FindStringSubmatch(block); address != nil {
			host = address[1]
		}
		certify(t, dir, host, files[1], files[2], files[3])
	}
	needs, _, err := check(command.Extensions{}, rest, path)
	require.NoError(t, err, "%s", block)
	for _, n := range needs {
		require.ErrorIs(t, n, config.ErrNotLinked)
	}
	return needs
}

var (
	// addresses finds the host of the address of a node in a block.
	addresses = regexp.MustCompile(`node: *\{ *address: "?([\w.-]+):`)
	// tokens, executables and pins find the files that a block names besides certificates.
	tokens      = regexp.MustCompile(`token-file: ([\w./-]+)`)
	executables = regexp.MustCompile(`path: ([\w./-]+)`)
	pins        = regexp.MustCompile(`sha256: \w+`)
)

// provided puts the tokens and the executables that a block names into a directory, and returns the block with their
// names and checksums.
func provided(t *testing.T, dir, block string) string {
	t.Helper()
	const text = "a program"
	block = strings.ReplaceAll(block, "/etc/bank/", "")
	block = strings.ReplaceAll(block, "/run/bank/", filepath.ToSlash(os.TempDir())+"/") // The path of a socket is short.
	write := func(name, content string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o700))
	}
	for _, name := range found(tokens, block) {
		write(name, "alice never "+strings.Repeat("ab", sha256.Size)+"\n")
	}
	for _, name := range found(executables, block) {
		if !filepath.IsAbs(name) {
			write(name, text)
		}
	}
	return pins.ReplaceAllString(block, fmt.Sprintf("sha256: %x", sha256.Sum256([]byte(text))))
}

// certificates finds the files of a certificate in a block.
var certificates = regexp.MustCompile(`tls: *\{ *certificate: ([\w.-]+), key: ([\w.-]+), authorities: ([\w.-]+) *\}`)

// certify makes a certificate, its key and its authority in a directory.
func certify(t *testing.T, dir, host, certificate, key, authority string) {
	t.Helper()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, args := range [][]string{
		{"cert", "authority", "-certificate", in(authority), "-key", in("of-the-authority.pem")},
		{"cert", "node", host, "-certificate", in(certificate), "-key", in(key), "-authority", in(authority), "-authority-key", in("of-the-authority.pem")},
	} {
		var said strings.Builder
		program := command.Program{Name: "quorate", Commands: []command.Command{{Name: "cert", Help: "Certificates", Args: &command.Cert{}}}}
		require.Equal(t, command.StatusOK, program.Run(args, &said, &said), said.String())
	}
}

// notOfNodes finds objects of Kubernetes, or parts of them, files of Prometheus, and lines for editors.
var notOfNodes = regexp.MustCompile(`^(apiVersion:|env:|# prometheus\.yml|# yaml-language-server:)`)

// filesOn returns the blocks of YAML on a page that configure a node.
func filesOn(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", page))
	require.NoError(t, err)
	blocks := strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n```yaml\n")[1:]
	for i := range blocks {
		var ends bool
		blocks[i], _, ends = strings.Cut(blocks[i], "\n```")
		require.True(t, ends, "a block of %s has no end", page)
	}
	return slices.DeleteFunc(blocks, notOfNodes.MatchString)
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package deploytest

import (
	"encoding/json"
	"math/bits"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the pages about deployments say: their commands about certificates are run, all others are
// compared with the help of the command, directories and files that they name exist, and their tables
// of alerts and settings are those of the rules and of the reference.

// page returns the text of a page.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", name))
	require.NoError(t, err)
	return string(text)
}

// commands returns the lines of the plain blocks of a page.
func commands(t *testing.T, name string) (lines []string) {
	t.Helper()
	for i, block := range strings.Split(page(t, name), "\n```") {
		if i%2 == 0 || !strings.HasPrefix(block, "\n") {
			continue // Between blocks, or a block in a language.
		}
		lines = append(lines, strings.Split(strings.TrimSpace(block), "\n")...)
	}
	require.NotEmpty(t, lines)
	return lines
}

// The commands about certificates on each page work as they stand, one after the other.
func TestTheCertificatesOfThePagesAreMade(t *testing.T) {
	for name, least := range map[string]int{"kubernetes.md": 4, "operations.md": 4} {
		all := commands(t, name)
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			ran := 0
			for _, line := range all {
				if args, is := strings.CutPrefix(line, "quorate cert "); is {
					out, err := command(t, nil, append([]string{"cert"}, strings.Fields(args)...)...)
					require.NoError(t, err, "%s: %s", line, out)
					ran++
				}
				for _, file := range regexp.MustCompile(`(?:--from-file=[a-z.]+|--cert|--key)=(\S+)`).FindAllStringSubmatch(line, -1) {
					require.FileExists(t, file[1], line)
				}
			}
			require.GreaterOrEqual(t, ran, least)
		})
	}
}

// quoted finds commands in code of a line, and on lines of their own.
var quoted = regexp.MustCompile("(?m)(?:`|^ *|/)(quorate(?: [a-z-]+)+(?: [^`#|\n]*)?)")

// Every quorate command that the pages name exists, with its flags.
func TestTheCommandsOfThePagesExist(t *testing.T) {
	helps := map[string]string{}
	help := func(words []string) (string, bool) {
		key := strings.Join(words, " ")
		if _, known := helps[key]; !known {
			out, err := command(t, nil, append(slices.Clone(words), "-h")...)
			if err != nil {
				out = ""
			}
			helps[key] = out
		}
		return helps[key], helps[key] != ""
	}
	seen := 0
	for _, name := range []string{"kubernetes.md", "operations.md", "choosing.md"} {
		for _, found := range quoted.FindAllStringSubmatch(page(t, name), -1) {
			words := strings.Fields(found[1])[1:]
			top, is := help(words[:1])
			require.True(t, is, "%s: %s", name, found[1])
			text := top
			if len(words) > 1 && strings.Contains(top, "\n  "+words[0]+" "+words[1]) {
				text, is = help(words[:2])
				require.True(t, is, "%s: %s", name, found[1])
			}
			for _, word := range words {
				if flag, is := strings.CutPrefix(word, "-"); is && len(flag) > 1 {
					flag, _, _ = strings.Cut(strings.TrimLeft(strings.TrimRight(flag, "`.,;)"), "-"), "=")
					require.Contains(t, text, "--"+flag, "%s: %s", name, found[1])
				}
			}
			seen++
		}
	}
	require.Greater(t, seen, 30)
}

// The directories and files of deploy that the pages name exist, and what kubectl applies can be built.
func TestTheFilesOfThePagesExist(t *testing.T) {
	applied := 0
	for _, name := range []string{"kubernetes.md", "operations.md", "observability.md", "discovery-kubernetes.md"} {
		for _, path := range regexp.MustCompile(`\bdeploy/[a-zA-Z/._-]*[a-zA-Z]`).FindAllString(page(t, name), -1) {
			_, err := os.Stat(filepath.Join(root, path))
			require.NoError(t, err, name)
		}
		for _, found := range regexp.MustCompile(`apply -k deploy/kubernetes/([a-z-]+)`).FindAllStringSubmatch(page(t, name), -1) {
			require.Contains(t, directories, found[1])
			applied++
		}
	}
	require.GreaterOrEqual(t, applied, 3)
	for _, dir := range directories {
		require.Contains(t, page(t, "kubernetes.md"), "| `"+dir+"` |")
	}
}

// The table of alerts has each of the rules, with its severity, and no other.
func TestTheTableOfAlertsIsThatOfTheRules(t *testing.T) {
	var want, got []string
	for _, rule := range alerts(t, rulesFile(t)) {
		want = append(want, rule.Alert+" "+rule.Labels["severity"])
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(Quorate[A-Za-z]+)` \\| (page|ticket) \\|").FindAllStringSubmatch(page(t, "operations.md"), -1) {
		got = append(got, row[1]+" "+row[2])
	}
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)
}

// Every setting of Quorate in the table for those who come from Akka is in the reference.
func TestTheSettingsOfTheMigrationExist(t *testing.T) {
	_, table, found := strings.Cut(page(t, "choosing.md"), "### Settings\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n### ")
	known, seen := page(t, "configuration.md"), 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, key := range regexp.MustCompile("`([a-z]+(?:\\.[a-z-]+)+)`").FindAllStringSubmatch(cells[2], -1) {
			require.Contains(t, known, "| `"+key[1]+"` |")
			seen++
		}
	}
	require.Greater(t, seen, 35)
}

// The sizes on the page about operations survive what it says: the machines of production are run through
// every set of crashes and every split in two.
func TestTheSizesSurviveWhatThePageSays(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| ([2-7]) \|[^|]*\| (\d+) of (\d+) \|`).FindAllStringSubmatch(page(t, "operations.md"), -1)
	require.Len(t, rows, 6)
	for _, row := range rows {
		n, err := strconv.Atoi(row[1])
		require.NoError(t, err)
		survived, all := 0, 1<<n-2
		if n < 7 { // As many as the command runs.
			out, err := command(t, nil, "--json", "simulate", "-exhaustive", row[1], "-family", "crash,split-2")
			require.NoError(t, err, out)
			var got struct {
				Rows []struct {
					Family                                           string
					Cases, Whole, Majority, Smaller, Waits, Needless int
				}
			}
			require.NoError(t, json.Unmarshal([]byte(out), &got))
			require.Len(t, got.Rows, 2)
			for _, r := range got.Rows {
				lives := r.Whole + r.Majority + r.Smaller
				require.Zero(t, r.Needless+r.Waits)
				if r.Family == "split-2" {
					require.Equal(t, r.Cases, lives, "one side goes on, always")
					continue
				}
				require.Equal(t, all, r.Cases)
				survived = lives
			}
		} else {
			for set := 1; set <= all; set++ {
				if left := n - bits.OnesCount(uint(set)); 2*left > n {
					survived++
				}
			}
		}
		require.Equal(t, []string{strconv.Itoa(survived), strconv.Itoa(all)}, row[2:], "%d nodes", n)
	}
}

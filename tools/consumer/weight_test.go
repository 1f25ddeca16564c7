// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// How much a program with a node links, at most; docs/versioning.md has the figures. The
// program is built without extras, with each extra, and with all of them; then the modules
// in its binary, its packages and its size are compared with the bounds.

package consumer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// extra is a part of a node that a program links only when it imports a package for it.
type extra struct {
	module string // The module that has the package, without the common prefix.
	path   string // The package that the program imports, without the common prefix.
	option string // The option that the program passes to cluster.Start, as source.
}

// The extras that a node has.
var (
	inTOML     = extra{"config/toml", "config/toml", "cluster.WithFormat(toml.Format())"}
	prometheus = extra{"cluster/prometheus", "cluster/prometheus", "cluster.WithMetrics(prometheus.Endpoint())"}
	host       = extra{"plugins", "plugins/host", "cluster.WithPlugins(host.New())"}
	durable    = extra{"ddata", "ddata/durable", "cluster.WithStore(durable.OpenIn)"}
)

// asked are the modules of others that come with an extra, by the beginnings of their paths.
// A node without the extra has none of them.
var asked = map[string]extra{
	"github.com/pelletier/":              inTOML,
	"github.com/prometheus/":             prometheus,
	"go.opentelemetry.io/otel/exporters": prometheus,
	"go.opentelemetry.io/otel/sdk":       prometheus,
	"github.com/hashicorp/":              host,
	"github.com/mattn/":                  host,
	"github.com/oklog/":                  host,
}

// program is the source of a program that starts a node with extras.
func program(extras []extra) string {
	var imports, options strings.Builder
	for _, e := range extras {
		fmt.Fprintf(&imports, "\t%q\n", prefix+e.path)
		options.WriteString(", " + e.option)
	}
	return "package main\n\nimport (\n\t\"context\"\n\n\t\"" + prefix + "cluster\"\n" + imports.String() + ")\n\n" +
		"func main() { cluster.Start(context.Background(), cluster.WithFile(\"cluster.yaml\")" + options.String() + ") }\n"
}

// A node is a library in a program of others: each module in it is one more that they
// have to trust and to keep up to date. A bound is raised in the commit that gains
// something for it, and lowered in the one that sheds weight.
func TestWeightOfANodeIsBounded(t *testing.T) {
	for _, c := range []struct {
		name              string
		extras            []extra
		modules, packages int     // Modules of others; packages with ours and the standard library's.
		megabytes         float64 // The size of the binary for linux/amd64, without symbols.
	}{
		{"a node", nil, 23, 441, 29.6},
		{"with TOML", []extra{inTOML}, 24, 446, 29.9},
		{"with metrics for Prometheus", []extra{prometheus}, 34, 486, 31.6},
		{"with plugins", []extra{host}, 32, 510, 32.8},
		{"with durable keys", []extra{durable}, 23, 443, 29.8},
		{"with all extras", []extra{inTOML, prometheus, host, durable}, 44, 561, 35.4},
	} {
		t.Run(c.name, func(t *testing.T) {
			others, packages, megabytes := weigh(t, c.extras)
			t.Logf("%d modules of others, %d packages, %.1f MB", len(others), packages, megabytes)
			require.LessOrEqual(t, len(others), c.modules, "%v", others)
			require.LessOrEqual(t, packages, c.packages)
			require.LessOrEqual(t, megabytes, c.megabytes)
			for beginning, e := range asked {
				linked := linkedFrom(others, beginning)
				if slices.Contains(c.extras, e) {
					require.NotEmpty(t, linked, "%s brings nothing from %s any more: take it out of the table", e.path, beginning)
				} else {
					require.Empty(t, linked, "comes without being asked for: it is for programs with %s", e.option)
				}
			}
		})
	}
}

// weigh builds a program with extras, and returns the modules of others that it links, the
// number of all its packages, and the size of its binary.
func weigh(t *testing.T, extras []extra) (others []string, all int, megabytes float64) {
	t.Helper()
	c := newConsumer(t)
	packages := []string{"cluster"}
	for _, e := range extras {
		// When the module around a nested one is in the cache, the go command may look no
		// further for a package.
		c.run(t, "go", "mod", "download", prefix+e.module+"@"+version)
		packages = append(packages, e.path)
	}
	c.gets(t, program(extras), packages...)
	c.env = append(c.env, "GOOS=linux", "GOARCH=amd64")
	c.run(t, "go", "build", "-ldflags=-s -w", "-o", "program", ".")
	ours := 0
	for line := range strings.Lines(c.run(t, "go", "version", "-m", "program")) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "dep" {
			if strings.HasPrefix(fields[1], prefix) {
				ours++
			} else {
				others = append(others, fields[1])
			}
		}
	}
	require.Positive(t, ours, "nothing was counted")
	about, err := os.Stat(filepath.Join(c.dir, "program"))
	require.NoError(t, err)
	return others, len(strings.Fields(c.run(t, "go", "list", "-deps", "."))), float64(about.Size()) / 1e6
}

// linkedFrom returns the modules whose paths have a beginning.
func linkedFrom(modules []string, beginning string) []string {
	var all []string
	for _, m := range modules {
		if strings.HasPrefix(m, beginning) {
			all = append(all, m)
		}
	}
	return all
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package compatibility writes the table of docs/compatibility.md: the number of each protocol between processes and of
// each format on disks, and from which version of its module on that is its number. The numbers are read from the
// code; a row is added when one has changed, and gets its version with the next release of the module.
//
//	err := compatibility.Derive(root)                                           // The code has changed.
//	err = compatibility.Release(root, map[string]string{"ddata": "v0.3.0"})     // These versions are released.
package compatibility

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// source is where the number of a protocol or format stands.
type source struct {
	what   string
	module string // Its directory.
	file   string
	name   string // A constant or variable of the file; empty: the number is the last element of a directory, such as v1.
}

// sources are all protocols and formats that two versions may have to share, in the order of the table.
func sources() []source {
	return []source{
		{"protocol between nodes", "membership", "membership/node.go", "protocolRange"},
		{"connections between nodes", "transport", "transport/internal/tcp/preface.go", "Protocol"},
		{"contract with plugins", "plugins", "plugins/handshake.go", "Version1"},
		{"contract with clients", "client", "client/proto/quorate/client/v1", ""},
		{"calls of entities", "rpc", "rpc/proto/quorate/rpc/v1", ""},
		{"replicated values", "ddata", "ddata/crdt/codec.go", "version"},
		{"records of replicated data", "ddata", "ddata/internal/wire/record.go", "format"},
		{"files of durable data", "ddata", "ddata/durable/log.go", "fileVersion"},
		{"list of these files", "ddata", "ddata/durable/manifest.go", "manifestVersion"},
		{"data directory of a node", "membership", "membership/internal/datadir/record.go", "recordVersion"},
		{"files of leases", "downing", "downing/lease/file/file.go", "header"},
		{"files of queues", "sharding/delivery", "sharding/delivery/internal/queuefile/record.go", "version"},
		{"files of states", "sharding/state/bolt", "sharding/state/bolt/store.go", "format"},
		{"datagrams of discovery", "discovery/multicast", "discovery/multicast/packet.go", "magic"},
	}
}

const (
	pageName   = "docs/compatibility.md"
	unreleased = "unreleased"
)

// Derive adds a row for each number that has changed.
func Derive(root string) error { return Release(root, nil) }

// Release does what [Derive] does, and notes the versions of modules, by their directories, in the rows that wait for
// one. In a repository without the page it does nothing.
func Release(root string, versions map[string]string) error {
	name := filepath.Join(root, filepath.FromSlash(pageName))
	page, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("compatibility: %w", err)
	}
	var rows []row
	for _, s := range sources() {
		now, err := s.number(root)
		if err != nil {
			return fmt.Errorf("compatibility: %s: %w", s.what, err)
		}
		rows = append(rows, s.rows(string(page), now, versions)...)
	}
	text, err := withRows(string(page), rows)
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// row is a row of the table.
type row struct{ what, number, module, from string }

func (r row) String() string {
	return fmt.Sprintf("| %s | %s | %s | %s |", r.what, r.number, r.module, r.from)
}

// rows returns the rows of one protocol or format: those that the page has, and one for the present number if that is
// another one. A number that was not released is replaced.
func (s source) rows(page, now string, versions map[string]string) []row {
	var rows []row
	for line := range strings.Lines(page) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); len(cells) == 4 && cells[0] == "| "+s.what {
			rows = append(rows, row{s.what, cells[1], cells[2], strings.TrimSuffix(cells[3], " |")})
		}
	}
	if last := len(rows) - 1; last < 0 || rows[last].number != now {
		if last >= 0 && rows[last].from == unreleased {
			rows = rows[:last]
		}
		rows = append(rows, row{s.what, now, s.module, unreleased})
	}
	for i, r := range rows {
		if version := versions[s.module]; version != "" && r.from == unreleased {
			rows[i].from = version
		}
	}
	return rows
}

// withRows replaces the rows of the table.
func withRows(page string, rows []row) (string, error) {
	lines := strings.Split(page, "\n")
	from := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "| --- |") }) + 1
	if from == 0 {
		return "", errors.New("compatibility: " + pageName + " has no table")
	}
	to := from
	for to < len(lines) && strings.HasPrefix(lines[to], "|") {
		to++
	}
	var texts []string
	for _, r := range rows {
		texts = append(texts, r.String())
	}
	return strings.Join(slices.Replace(lines, from, to, texts...), "\n"), nil
}

var digits = regexp.MustCompile(`[0-9]+`)

// number returns the present number: the digits of the value of the constant or variable, the first and the last of a
// range.
func (s source) number(root string) (string, error) {
	name := filepath.Join(root, filepath.FromSlash(s.file))
	if s.name == "" {
		_, err := os.Stat(name)
		return digits.FindString(filepath.Base(name)), err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	var found []string
	for node := range ast.Preorder(file) {
		if spec, ok := node.(*ast.ValueSpec); ok && len(spec.Values) == 1 && spec.Names[0].Name == s.name {
			for part := range ast.Preorder(spec.Values[0]) {
				if literal, ok := part.(*ast.BasicLit); ok {
					found = append(found, digits.FindAllString(literal.Value, -1)...)
				}
			}
		}
	}
	if len(found) == 0 {
		return "", fmt.Errorf("%s has no number in %s", s.file, s.name)
	}
	return strings.Join(slices.Compact(found), " to "), nil
}

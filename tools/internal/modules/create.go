// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
	"unicode"

	"golang.org/x/mod/modfile"
)

// A module is made from templates, in a directory that does not exist yet or has no go.mod, and added to go.work and to
// the tables that name each module.

// Prefix is how the import paths of all modules begin.
const Prefix = "github.com/quorate/quorate/"

const (
	architecture = "docs/architecture.md"
	versioning   = "docs/versioning.md"
)

var wellFormed = regexp.MustCompile(`^[a-z][a-z0-9]*(/[a-z][a-z0-9]*)*$`)

// Create makes a module: dir is its directory below the root, with slashes, about says in half a sentence what it is
// for. Code that is there already stays. The error names what is wrong with the names, or the file that cannot be
// written.
func Create(root, dir, about string) error {
	switch {
	case !wellFormed.MatchString(dir):
		return fmt.Errorf("%q is no directory of a module: words of lower-case letters and digits, with slashes between them", dir)
	case about == "" || strings.ContainsAny(about, "|\n"):
		return errors.New("say in half a sentence what the module is for, such as \"finds nodes in ZooKeeper\"")
	}
	if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err == nil {
		return fmt.Errorf("%s is a module already", dir)
	}
	license, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
		return err
	}
	m := moduleData{Dir: dir, Path: Prefix + dir, Name: path.Base(dir), About: about, Up: strings.Repeat("../", strings.Count(dir, "/")+1)}
	for name, text := range templates() {
		if err := m.write(filepath.Join(root, dir, name), text); err != nil {
			return err
		}
	}
	return errors.Join(
		keep(filepath.Join(root, dir, "LICENSE"), license),
		edit(filepath.Join(root, "go.work"), func(text string) (string, error) { return use(text, dir) }),
		edit(filepath.Join(root, architecture), func(text string) (string, error) {
			return insert(text, "| module | ", dir, fmt.Sprintf("| %s | %s | nothing |", dir, about))
		}),
		edit(filepath.Join(root, versioning), func(text string) (string, error) {
			return insert(text, "| package | ", dir, fmt.Sprintf("| %s | kept | |", dir))
		}),
	)
}

// moduleData is what the templates say of a module.
type moduleData struct{ Dir, Path, Name, About, Up string }

// Title is the first sentence about it.
func (m moduleData) Title() string {
	r := []rune(m.About)
	return string(unicode.ToUpper(r[0])) + strings.TrimSuffix(string(r[1:]), ".")
}

// templates returns the files that a module begins with, by their names.
func templates() map[string]string {
	return map[string]string{
		"go.mod": "module {{.Path}}\n\ngo 1.26.0\n",
		"doc.go": `// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package {{.Name}} {{.About}}.
package {{.Name}}
`,
		"README.md": `# {{.Dir}}

{{.Title}}.

` + "```sh\ngo get {{.Path}}\n```" + `

Why it is so: [DESIGN.md](DESIGN.md). Changes: [CHANGELOG.md](CHANGELOG.md). Part of
[Quorate]({{.Up}}README.md). License: Apache-2.0.
`,
		"DESIGN.md": "# Why {{.Dir}} is as it is\n\n- {{.Title}}.\n",
		"CHANGELOG.md": `# Changelog

The form is that of [Keep a Changelog](https://keepachangelog.com/en/1.1.0/), the
versions are [semantic](https://semver.org/spec/v2.0.0.html).

## Unreleased

### Added

- {{.Title}}.
`,
	}
}

// write fills a template in, where there is no file of the name.
func (m moduleData) write(name, text string) error {
	t, err := template.New(name).Parse(text)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, m); err != nil {
		return err
	}
	return keep(name, b.Bytes())
}

// keep writes a file, unless there is one.
func keep(name string, data []byte) error {
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	return os.WriteFile(name, data, 0o644)
}

// edit changes a file by a function.
func edit(name string, change func(string) (string, error)) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	changed, err := change(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if changed == string(text) {
		return nil
	}
	return os.WriteFile(name, []byte(changed), 0o644)
}

// use adds a directory to a go.work, sorted.
func use(text, dir string) (string, error) {
	work, err := modfile.ParseWork("go.work", []byte(text), nil)
	if err != nil {
		return "", err
	}
	if err := work.AddUse("./"+dir, ""); err != nil {
		return "", err
	}
	work.SortBlocks()
	work.Cleanup()
	return string(modfile.Format(work.Syntax)), nil
}

// insert adds a row for a directory to the table that begins with head: behind the last row of a directory with the
// same beginning, else at the end.
func insert(text, head, dir, row string) (string, error) {
	lines := strings.Split(text, "\n")
	at, best := -1, -1
	for i, line := range lines {
		switch {
		case at < 0 && strings.HasPrefix(line, head):
			at = i
		case at < 0:
		case !strings.HasPrefix(line, "|"):
			if best < 0 {
				best = i - 1
			}
			return strings.Join(append(lines[:best+1:best+1], append([]string{row}, lines[best+1:]...)...), "\n"), nil
		default:
			first, _, _ := strings.Cut(dir, "/")
			if name := cell(line, 0); name == first || strings.HasPrefix(name, first+"/") {
				best = i
			}
		}
	}
	return "", fmt.Errorf("no table that begins with %q", head)
}

// cell returns the text of a cell of a row.
func cell(row string, n int) string {
	cells := strings.Split(strings.Trim(row, "|"), "|")
	if n >= len(cells) {
		return ""
	}
	return strings.TrimSpace(cells[n])
}

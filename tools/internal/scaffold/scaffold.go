// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/proto"
)

// First what a project is and which files it has ([Project.Files]), then how they come into a
// directory ([Write]). What differs between policies is in policies.go.

// The languages in which projects are written.
const (
	Go     = "go"
	Python = "python"
)

// Languages lists the languages.
func Languages() []string { return []string{Go, Python} }

// Project is the project of a plugin.
type Project struct {
	// Name is the name of the plugin, see [CheckName].
	Name string
	// Policy is what the plugin decides.
	Policy plugins.Policy
	// Language is one of [Languages].
	Language string
	// Module is the path of the Go module.
	Module string
	// Release is the version of Quorate that a Go module requires, such as v0.3.0; empty:
	// the latest, which go mod tidy finds.
	Release string
	// Checkout is a directory with a checkout of Quorate that is used instead of a release,
	// absolute; empty: none.
	Checkout string
}

// File is one file of a project.
type File struct {
	// Name is the path in the project, with slashes.
	Name string
	// Content is what the file holds.
	Content []byte
}

//go:embed all:templates
var templates embed.FS

// templateSuffix ends the names of files that are templates.
const templateSuffix = ".tmpl"

// CheckName returns why a plugin cannot have a name: it is a key of a configuration, a file
// and a part of a path.
func CheckName(name string) error {
	if !regexp.MustCompile(`^[a-z]([a-z0-9-]{0,62}[a-z0-9])?$`).MatchString(name) {
		return fmt.Errorf("%q is no name for a plugin: take up to 64 lower-case letters, digits and hyphens, a letter first, such as my-witness", name)
	}
	return nil
}

// Files returns the files of the project, sorted by name.
func (p Project) Files() ([]File, error) {
	if err := CheckName(p.Name); err != nil {
		return nil, err
	}
	about, ok := policies()[p.Policy]
	if !ok {
		return nil, fmt.Errorf("there is no policy %q; there are %s", p.Policy, list(plugins.Policies()))
	}
	if !slices.Contains(Languages(), p.Language) {
		return nil, fmt.Errorf("there are no templates in %q; there are %s", p.Language, list(Languages()))
	}
	values, err := newValues(p, about)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, part := range []string{"common", string(p.Policy)} {
		some, err := expand(path.Join("templates", p.Language, part), values)
		if err != nil {
			return nil, err
		}
		files = append(files, some...)
	}
	if p.Language == Python {
		contract, err := contractOf(about)
		if err != nil {
			return nil, err
		}
		files = append(files, contract...)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// expand returns the files below a directory of templates.
func expand(dir string, v values) ([]File, error) {
	var files []File
	err := fs.WalkDir(templates, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := templates.ReadFile(name)
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(name, dir+"/")
		if stem, is := strings.CutSuffix(name, templateSuffix); is {
			parsed, err := template.New(name).Option("missingkey=error").Parse(string(content))
			if err != nil {
				return err
			}
			var text strings.Builder
			if err := parsed.Execute(&text, v); err != nil {
				return err
			}
			name, content = stem, []byte(text.String())
		}
		if path.Base(name) == "gitignore" { // Under its own name it would be that of this repository.
			name = path.Join(path.Dir(name), ".gitignore")
		}
		files = append(files, File{name, content})
		return nil
	})
	return files, err
}

// contractOf returns the part of the contract that a plugin of one policy needs.
func contractOf(about policy) ([]File, error) {
	var files []File
	for _, name := range []string{"plugin.proto", about.contract} {
		name = "quorate/plugin/v1/" + name
		content, err := fs.ReadFile(proto.Files(), name)
		if err != nil {
			return nil, err
		}
		files = append(files, File{"proto/" + name, content})
	}
	return files, nil
}

// Write makes a directory of the files. If it exists already, it must be empty. After an
// error nothing has been written.
func Write(dir string, files []File) (err error) {
	dir = filepath.Clean(dir)
	switch entries, err := os.ReadDir(dir); {
	case err == nil && len(entries) > 0:
		return fmt.Errorf("%s is not empty: name another directory", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err // It is a file, or cannot be looked into.
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".quorate-")
	if err != nil {
		if fault, ok := errors.AsType[*fs.PathError](err); ok { // Its path is that of the temporary directory.
			err = fault.Err
		}
		return fmt.Errorf("%s cannot be made, since nothing can be written into %s: %w", dir, filepath.Dir(dir), err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(fresh))
		}
	}()
	for _, f := range files {
		target := filepath.Join(fresh, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, f.Content, 0o644); err != nil {
			return err
		}
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s cannot be replaced: %w", dir, err)
	}
	return os.Rename(fresh, dir)
}

// list returns names as text.
func list[S ~string](names []S) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	return strings.Join(texts, ", ")
}

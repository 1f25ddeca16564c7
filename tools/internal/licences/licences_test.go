// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package licences

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	prefix   = "github.com/quorate/quorate/"
	copyleft = "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License " +
		"as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.\n"
)

// A module is listed once, with the lowest of our modules that bring it; what only internal packages that nobody
// imports and packages for tests import is not.
func TestModulesThatProgramsLink(t *testing.T) {
	all := map[string]*listed{}
	add := func(module, pkg string, imports ...string) {
		path := module + pkg
		all[path] = &listed{ImportPath: path, Dir: "/cache/" + path, Imports: imports, Module: &struct{ Path, Version, Dir string }{module, "v1.0.0", "/cache/" + module}}
	}
	all["fmt"] = &listed{ImportPath: "fmt"}
	add("x.org/wire", "", "x.org/wire/inner", "fmt")
	add("x.org/wire", "/inner", "x.org/far")
	add("x.org/far", "")
	add("x.org/assert", "")
	add("x.org/plug", "", "x.org/far")
	add(prefix+"low", "", prefix+"low/internal/core")
	add(prefix+"low", "/internal/core", "x.org/wire")
	add(prefix+"low", "/internal/tool", "x.org/assert")
	add(prefix+"low", "/lowtest", "x.org/assert")
	add(prefix+"high", "", prefix+"low", "x.org/wire")
	add(prefix+"other", "", "x.org/plug", "absent")
	ours := map[string]string{prefix + "low": "low", prefix + "high": "high", prefix + "other": "other"}

	by := map[string]string{}
	for _, m := range linked(all, ours) {
		by[m.Path] = strings.Join(m.By, " ")
	}
	require.Equal(t, map[string]string{"x.org/wire": "low", "x.org/far": "low other", "x.org/plug": "other"}, by)
}

// Whatever is not known to be allowed is refused, with what brings it and what to do.
func TestLicencesAreRecognised(t *testing.T) {
	apache, err := os.ReadFile("../../../LICENSE")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		files map[string]string
		want  string // The licences, or what the error says.
	}{
		"allowed":           {map[string]string{"LICENSE": string(apache)}, "Apache-2.0"},
		"not allowed":       {map[string]string{"COPYING.txt": copyleft}, "its COPYING.txt is GPL-3.0"},
		"none":              {map[string]string{"README.md": string(apache), "license.go": "package m"}, "it has no file with a licence"},
		"unknown":           {map[string]string{"LICENCE": "You must ask first. " + strings.Repeat("No means no. ", 100)}, "its LICENCE is no licence that is known: 0 % of it are recognised"},
		"of a part":         {map[string]string{"LICENSE": string(apache), "used/LICENSE": copyleft}, "its used/LICENSE is GPL-3.0"},
		"of a part unused":  {map[string]string{"LICENSE": string(apache), "unused/LICENSE": copyleft}, "Apache-2.0"},
		"nothing but notes": {map[string]string{"LICENSE": ""}, "its LICENSE is no licence that is known"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Module{Path: "x.org/m", Version: "v1.2.3", Dir: t.TempDir(), By: []string{"transport", "plugins"}}
			m.packages = []string{filepath.Join(m.Dir, "used", "deep")}
			require.NoError(t, os.MkdirAll(m.packages[0], 0o755))
			for file, text := range c.files {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(m.Dir, file)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(m.Dir, file), []byte(text), 0o600))
			}
			if err := Find(m); err != nil {
				require.ErrorContains(t, err, "licences: x.org/m v1.2.3, which comes with transport, plugins: "+c.want)
				require.ErrorContains(t, err, "Take another module")
				return
			}
			require.Equal(t, c.want, strings.Join(m.Licences, ", "))
		})
	}
}

// The page is written only if every licence is allowed; the error has all that are not.
func TestPageIsWritten(t *testing.T) {
	apache, err := os.ReadFile("../../../LICENSE")
	require.NoError(t, err)
	root, good := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "docs"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(good, "LICENSE"), apache, 0o600))
	bad := func(path string) *Module { return &Module{Path: path, Dir: root} }
	err = Write(root, []*Module{bad("x.org/a"), {Path: "x.org/b", Dir: good}, bad("x.org/c")})
	require.ErrorContains(t, err, "x.org/a")
	require.ErrorContains(t, err, "x.org/c")
	require.NoFileExists(t, filepath.Join(root, "docs/licences.md"))

	require.NoError(t, Write(root, []*Module{{Path: "x.org/b", Dir: good, By: []string{"plugins", "transport"}}}))
	page, err := os.ReadFile(filepath.Join(root, "docs/licences.md"))
	require.NoError(t, err)
	require.Equal(t, head+"| x.org/b | Apache-2.0 | plugins, transport |\n", string(page))
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package page writes reports as pages that need nothing else: one file each, with the style
// that all of them share, that follows the light or dark colours of its reader, and that no
// browser lets load anything. It has no state.
package page

import (
	_ "embed"
	"html/template"
	"os"
	"strings"
)

//go:embed page.css
var style string

// head is what all pages begin with: {{template "head" TITLE}}.
const head = `{{define "head"}}<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{{.}}</title>
<style>{{style}}</style>{{end}}`

// Write writes the page of a template to a file that everybody may read. The template begins with
// {{template "head" TITLE}}, and functions may be given to it.
func Write(path, text string, functions template.FuncMap, data any) error {
	all := template.FuncMap{"style": func() template.CSS { return template.CSS(style) }}
	page, err := template.New("page").Funcs(all).Funcs(functions).Parse(head + text)
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := page.Execute(&b, data); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

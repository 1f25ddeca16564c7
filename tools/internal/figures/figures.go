// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/quorate/quorate/tools/internal/command"
)

// Render goes over the page once: blocks are replaced by what their commands print
// ([renderer.console]), then tables by what their functions return, since a table may be about
// the blocks. A quick renderer leaves [unknown] where a figure takes long to get; [Differences]
// passes it.

// Page is the path of the page from the root of the repository.
const Page = "docs/downing.md"

// unknown stands for a figure that was not computed.
const unknown = "?"

// quickFamilies are the families that are run for the blocks of a quick rendering. The others
// have most of the cases.
const quickFamilies = "split-2,split-3,one-way,crash,commanded"

var (
	consolePattern = regexp.MustCompile("(?ms)^```\n\\$ (quorate simulate -exhaustive [^\n]*)\n(.*?)^```$")
	tablePattern   = regexp.MustCompile(`(?ms)^<!-- Figures: ([a-z -]+) -->\n(.*?)^<!-- End of figures\. -->$`)
	filePattern    = regexp.MustCompile("(?ms)^```yaml\n# ([a-z-]+\\.yaml)\n(.*?)^```$")
)

// renderer has what the figures of a page come from.
type renderer struct {
	ctx   context.Context //nolint:containedctx // That of one call of Render.
	root  string          // The root of the repository.
	dir   string          // Where the files of the page are, for commands.
	quick bool
	page  string
}

// Render returns the page of the repository at root with the figures that its commands print.
// If quick is set, those that take long are left out, and the result is for [Differences] alone.
func Render(ctx context.Context, root string, quick bool) (page, rendered string, err error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(Page)))
	if err != nil {
		return "", "", fmt.Errorf("figures: %w", err)
	}
	dir, err := os.MkdirTemp("", "figures")
	if err != nil {
		return "", "", fmt.Errorf("figures: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &renderer{ctx: ctx, root: root, dir: dir, quick: quick, page: string(text)}
	rendered, err = r.render()
	return string(text), rendered, err
}

func (r *renderer) render() (string, error) {
	for _, f := range filePattern.FindAllStringSubmatch(r.page, -1) {
		if err := os.WriteFile(filepath.Join(r.dir, f[1]), []byte(f[2]), 0o600); err != nil {
			return "", fmt.Errorf("figures: %w", err)
		}
	}
	var err error
	if r.page, err = replaceAll(consolePattern, r.page, r.console); err != nil {
		return "", err
	}
	return replaceAll(tablePattern, r.page, r.table)
}

// replaceAll replaces what the second group of a pattern matches, by a function of what the first
// one does and of the text to replace.
func replaceAll(pattern *regexp.Regexp, text string, by func(name, old string) (string, error)) (string, error) {
	var out strings.Builder
	last := 0
	for _, m := range pattern.FindAllStringSubmatchIndex(text, -1) {
		replaced, err := by(text[m[2]:m[3]], text[m[4]:m[5]])
		if err != nil {
			return "", err
		}
		out.WriteString(text[last:m[4]])
		out.WriteString(replaced)
		last = m[5]
	}
	if last == 0 {
		return "", fmt.Errorf("figures: %s has nothing of the form %s", Page, pattern)
	}
	return out.String() + text[last:], nil
}

// table returns one of the tables.
func (r *renderer) table(name, _ string) (string, error) {
	compute, ok := tables()[name]
	if !ok {
		return "", fmt.Errorf("figures: %s names the figures %q, which nothing computes", Page, name)
	}
	text, err := compute(r)
	if err != nil {
		return "", fmt.Errorf("figures: %s: %w", name, err)
	}
	return text, nil
}

// console returns what a command line prints. A quick renderer runs some families of it, and
// leaves the figures of the others unknown.
func (r *renderer) console(line, old string) (string, error) {
	if !r.quick {
		return r.run(line)
	}
	out, err := r.run(line + " -family " + quickFamilies)
	if err != nil {
		return "", err
	}
	fresh := rows(out)
	var text strings.Builder
	for l := range strings.Lines(old) {
		if f := strings.Fields(l); isRow(f) {
			if l = fresh[f[0]]; l == "" {
				l = "  " + f[0] + strings.Repeat(" "+unknown, len(f)-1) + "\n"
			}
		}
		text.WriteString(l)
	}
	return text.String(), nil
}

// isRow reports whether these are the fields of a row of outcomes: a family and eight figures.
func isRow(fields []string) bool {
	return len(fields) == 9 && strings.Trim(fields[1], "0123456789"+unknown) == ""
}

// rows returns the rows of outcomes in a text, by family.
func rows(text string) map[string]string {
	all := map[string]string{}
	for l := range strings.Lines(text) {
		if f := strings.Fields(l); isRow(f) {
			all[f[0]] = l
		}
	}
	return all
}

// run runs a command line of quorate simulate, and returns what it prints.
func (r *renderer) run(line string) (string, error) {
	args := strings.Fields(line)[1:]
	if i := slices.Index(args, "-settings"); i >= 0 {
		args[i+1] = filepath.Join(r.dir, args[i+1])
	}
	var out, errs bytes.Buffer
	program := command.Program{Name: "quorate", Commands: []command.Command{
		{Name: "simulate", Help: "Run a cluster in virtual time", Args: &command.Simulation{}},
		{Name: "version", Help: "Print the version", Args: &command.Version{}},
	}}
	if status := program.Run(args, &out, &errs); status != command.StatusOK {
		return "", fmt.Errorf("figures: %s: status %d: %s%s", line, status, out.String(), errs.String())
	}
	return out.String(), nil
}

// Differences returns the lines of a page that are not what was rendered, both, in pairs. An
// unknown figure equals any.
func Differences(page, rendered string) []string {
	has, wants := strings.Split(page, "\n"), strings.Split(rendered, "\n")
	var all []string
	for i := range max(len(has), len(wants)) {
		h, w := "", ""
		if i < len(has) {
			h = has[i]
		}
		if i < len(wants) {
			w = wants[i]
		}
		if !agree(strings.Fields(h), strings.Fields(w)) {
			all = append(all, "the page:    "+h, "a fresh run: "+w)
		}
	}
	return all
}

func agree(has, wants []string) bool {
	return slices.EqualFunc(has, wants, func(h, w string) bool { return h == w || w == unknown })
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Records that were written as lines become the table of a page again.

// ReadLines reads what [Lines] has written.
func ReadLines(r io.Reader) (records []Record, err error) {
	for in := json.NewDecoder(r); ; {
		var next Record
		if err := in.Decode(&next); errors.Is(err, io.EOF) {
			return records, nil
		} else if err != nil {
			return nil, fmt.Errorf("record %d: %w", len(records)+1, err)
		}
		records = append(records, next)
	}
}

// Markdown writes a table of the records, with all that differs from machine to machine least: the ratio to each
// floor, and the processor time.
func Markdown(w io.Writer, records []Record) {
	fmt.Fprint(w, "| figure | median | smallest to largest | CPU µs an operation | to its floors | target | |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range records {
		cpu := ""
		if r.CPU > 0 {
			cpu = short(r.CPU)
		}
		target, mark := aimed(r.Target, r.Met)
		mark = strings.NewReplacer("+", "met", "*", "**missed**").Replace(mark)
		if r.CPUTarget != nil && !*r.CPUMet {
			mark += fmt.Sprintf(", CPU %s **missed**", short(*r.CPUTarget))
		}
		if r.Stable != nil && !*r.Stable {
			mark += " ~"
		}
		if !r.Correct() {
			mark += " !"
		}
		fmt.Fprintf(w, "| %s | %s %s | %s to %s | %s | %s | %s | %s |\n", r.Name, short(r.Value), r.Unit, short(r.Min), short(r.Max), cpu, r.besideAll(), target, strings.TrimPrefix(mark, ", "))
	}
}

// besideAll names the ratio to each floor, the first one first.
func (r Record) besideAll() string {
	if r.Floor == "" {
		return ""
	}
	names := []string{r.Floor}
	for name := range r.Ratios {
		if name != r.Floor {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	for i, name := range names {
		_, figure, _ := strings.Cut(name, "/")
		names[i] = fmt.Sprintf("%s of %s", short(r.Ratios[name]), figure)
	}
	return strings.Join(names, ", ")
}

// OnPage returns a page with the records as its table of a name, below a line that says where they are from. Two marks
// say where a table stands on the page.
func OnPage(page []byte, table, from string, records []Record) ([]byte, error) {
	begins, ends := fmt.Sprintf("<!-- the table of %s begins -->\n", table), fmt.Sprintf("<!-- the table of %s ends -->\n", table)
	before, rest, begun := bytes.Cut(page, []byte(begins))
	_, after, ended := bytes.Cut(rest, []byte(ends))
	if !begun || !ended {
		return nil, fmt.Errorf("the page does not have the lines %q and %q", strings.TrimSpace(begins), strings.TrimSpace(ends))
	}
	var out bytes.Buffer
	out.Write(before)
	fmt.Fprintf(&out, "%s\n%s\n\n", begins, from)
	Markdown(&out, records)
	fmt.Fprintf(&out, "\n%s", ends)
	out.Write(after)
	return out.Bytes(), nil
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxSubject is how many columns a subject has at most.
	maxSubject = 72
	// maxLines is how many lines a commit may change by hand without a reason.
	maxLines = 3000
	// trailer begins the line of a message that gives that reason.
	trailer = "Large:"
)

// A record begins with a NUL, and a message ends with a SOH. A line of changes has the lines that came, those that
// went, and the name; binary files have no numbers.
const form = "--format=%x00%h%n%B%x01"

// subject is "module: verb object", or that of a commit that takes one back.
var subject = regexp.MustCompile(`^([A-Za-z.][A-Za-z0-9/., _-]*: \S|Revert ")`)

// generated matches what nobody writes by hand, and what is data.
var generated = regexp.MustCompile(`\.pb\.go$|(^|/)go(\.work)?\.sum$|^docs/(api|images)/|(^|/)testdata/|package-lock\.json$`)

// Check returns what is wrong with the commits of a repository after a moment that git understands, a line for each,
// the latest first. Merges are left out.
func Check(ctx context.Context, root, since string) (faults []string, err error) {
	cmd := exec.CommandContext(ctx, "git", "log", "--no-merges", "--since="+since, "--numstat", "-M", form)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("history: git log in %s: %w", root, err)
	}
	for _, record := range strings.Split(string(out), "\x00")[1:] {
		message, changes, _ := strings.Cut(record, "\x01")
		hash, message, _ := strings.Cut(message, "\n")
		faults = append(faults, check(hash, message, changed(changes))...)
	}
	return faults, nil
}

// check returns what is wrong with one commit.
func check(hash, message string, lines int) (faults []string) {
	first, body, _ := strings.Cut(message, "\n")
	if !subject.MatchString(first) {
		faults = append(faults, fmt.Sprintf("%s: the subject %q is not \"module: verb object\"", hash, first))
	}
	if n := utf8.RuneCountInString(first); n > maxSubject {
		faults = append(faults, fmt.Sprintf("%s: the subject has %d columns, of %d that it may have: %s", hash, n, maxSubject, first))
	}
	if lines > maxLines && !strings.Contains("\n"+body, "\n"+trailer+" ") {
		faults = append(faults, fmt.Sprintf("%s: %d lines by hand, of %d that a commit may have without a line %q with the reason: divide it", hash, lines, maxLines, trailer))
	}
	return faults
}

// changed counts the lines that were written or deleted by hand. A file that was moved counts with what it has lost and
// got.
func changed(numstat string) (lines int) {
	for line := range strings.Lines(numstat) {
		fields := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		if len(fields) < 3 || generated.MatchString(fields[2]) {
			continue
		}
		for _, number := range fields[:2] {
			if n, err := strconv.Atoi(number); err == nil {
				lines += n
			}
		}
	}
	return lines
}

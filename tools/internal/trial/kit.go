// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/quorate/quorate/tools/internal/trial/kittest"
)

// The kit is code of tests, which needs package testing to run it. It runs in a process of its
// own (package kittest), which prints what `go test -v` prints for tools; [kitReader] reads that.

// kit runs the parts of the kit that are wanted.
func (t *trial) kit(ctx context.Context) error {
	pattern, some := t.pattern()
	if !some {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotRun, err)
	}
	run := exec.CommandContext(ctx, self, t.Kit(t.Config.Policy, pattern)...)
	run.WaitDelay = closeTimeout
	var trouble strings.Builder
	run.Stderr = &trouble
	out, err := run.StdoutPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotRun, err)
	}
	k := kitReader{trial: t}
	read := k.read(out)
	_, _ = io.Copy(io.Discard, out) // Behind a line that is too long, or the kit would wait for who reads on.
	ended := run.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(ended, &exit) && k.parts > 0 && exit.ExitCode() == 1 {
		ended = nil // A part has failed, and is reported.
	}
	if err := errors.Join(read, ended); err != nil {
		t.add(Check{Name: "kit", Text: fmt.Sprintf("the kit was cut short at %s: %v", cmp.Or(k.at, "its beginning"), err), Log: k.cut(trouble.String()), Repeat: "--only kit"})
	}
	return context.Cause(ctx)
}

// pattern returns the pattern of the parts that are wanted, and false if none is.
func (t *trial) pattern() (string, bool) {
	if len(t.Only) == 0 {
		return kittest.Root, true
	}
	for _, only := range t.Only {
		if rest, ok := strings.CutPrefix(only, kittest.Root); ok {
			var parts []string
			for part := range strings.SplitSeq(kittest.Root+rest, "/") {
				parts = append(parts, "^"+regexp.QuoteMeta(part))
			}
			return strings.Join(parts, "/"), true
		}
	}
	return "", false
}

// kitReader makes checks of what the process of the kit prints.
type kitReader struct {
	*trial

	at    string              // The part under way.
	parts int                 // How many have ended.
	log   map[string][]string // What the parts under way have printed, cut.
	over  map[string]bool     // Parts that have parts of their own, which are no checks.
}

// marker begins the lines that package testing prints about parts, for tools that read them.
const marker = "\x16"

// maxLog is how many lines of a part are kept, the last ones: what the plugin has printed is at the
// end. maxLine is how long each may be. A line of more than maxRead bytes ends the reading.
const (
	maxLog  = 60
	maxLine = 400
	maxRead = 1 << 20
)

func (k *kitReader) read(out io.Reader) error {
	k.log, k.over = make(map[string][]string), make(map[string]bool)
	ended := regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (\S+) \(([0-9.]+)s\)$`)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxRead)
	for lines.Scan() {
		line := lines.Text()
		before, said, marked := strings.Cut(line, marker)
		if !marked || strings.TrimSpace(before) != "" {
			k.note(line)
			continue
		}
		if m := ended.FindStringSubmatch(said); m != nil {
			k.ended(m[2], m[1] != "FAIL", m[3])
			continue
		}
		if fields := strings.Fields(said); len(fields) == 3 && fields[0] == "===" {
			k.at = fields[2]
			if fields[1] == "RUN" {
				k.over[k.at[:max(strings.LastIndexByte(k.at, '/'), 0)]] = true
				k.progress("%s", k.at)
			}
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("it has printed a line of more than %d bytes", maxRead)
	}
	return lines.Err()
}

// note keeps a line of the part under way.
func (k *kitReader) note(line string) {
	if line = strings.TrimSpace(line); line != "" {
		kept := k.log[k.at]
		kept = append(kept[max(0, len(kept)+1-maxLog):], strings.ToValidUTF8(line[:min(len(line), maxLine)], ""))
		k.log[k.at] = kept
	}
}

// ended reports a part that has ended. One that has parts of its own is reported only for what
// it has printed itself.
func (k *kitReader) ended(name string, ok bool, seconds string) {
	log := k.log[name]
	delete(k.log, name)
	k.parts++
	if k.over[name] && (ok || len(log) == 0) {
		return
	}
	took, _ := strconv.ParseFloat(seconds, 64) // The pattern has made sure that it is a number.
	c := Check{Name: name, OK: ok, Seconds: took}
	if !ok {
		c.Log, c.Repeat, c.Text = log, "--only "+name, "failed"
	}
	k.add(c)
}

// cut returns the last lines of a text.
func (*kitReader) cut(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[max(len(lines)-maxLog, 0):]
}

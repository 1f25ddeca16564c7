// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A Step is one call of go test, or of another command.
type Step struct {
	// Packages are the directories of the packages to test, relative to the root. Without any,
	// Command is run.
	Packages []string
	// Args are the flags of go test.
	Args []string
	// Module is the directory of a module that go.work does not name, which is tested by itself: Packages are
	// relative to it. "" means the workspace.
	Module string
	// Command is a command of the root, run as it is; its output is shown.
	Command []string
	// Env is added to the environment.
	Env []string
	// LeftOut says why nothing is run, and what to do about it; "" if something is.
	LeftOut string
}

// goTest returns the arguments of the go command for the step: of the whole of it, or, with
// again, for the named tests of one package alone.
func (s Step) goTest(again string, tests []string) []string {
	args := append([]string{"test", "-json", "-vet=off"}, s.Args...)
	if again != "" {
		args = slices.DeleteFunc(args, func(arg string) bool { return hasPrefix(arg, []string{"-run=", "-fuzz=", "-fuzztime="}) })
		return append(args, "-count=1", "-run=^("+strings.Join(tests, "|")+")$", "./"+again)
	}
	for _, dir := range s.Packages {
		args = append(args, "./"+dir)
	}
	return args
}

// repeat returns the command line that runs tests of a package again. Without tests it runs all of
// the package.
func (s Step) repeat(dir string, tests []string) string {
	words := append(slices.Clone(s.Env), "go")
	if s.Module != "" {
		words = append([]string{"GOWORK=off"}, append(words, "-C", s.Module)...)
	}
	words = append(words, "test")
	left := []string{"-p=", "-timeout=", "-count="}
	if len(tests) > 0 {
		left = append(left, "-run=", "-fuzz=", "-fuzztime=")
	}
	for _, arg := range s.Args {
		if !hasPrefix(arg, left) {
			words = append(words, arg)
		}
	}
	words = append(words, "-count=1")
	if len(tests) > 0 {
		words = append(words, fmt.Sprintf("-run='^(%s)$'", strings.Join(tests, "|")))
	}
	return strings.Join(append(words, "./"+dir), " ")
}

// command makes the process of the step.
func (s Step) command(ctx context.Context, root string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = filepath.Join(root, filepath.FromSlash(s.Module))
	cmd.Env = append(os.Environ(), s.Env...)
	if s.Module != "" {
		cmd.Env = append(cmd.Env, "GOWORK=off")
	}
	cmd.Stderr = os.Stderr
	return cmd
}

func hasPrefix(text string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(text, p) })
}

// Restrict leaves of steps the packages of one module.
func (w *Workspace) Restrict(steps []Step, module string) []Step {
	var own []Step
	for _, s := range steps {
		if s.Module == "" && len(s.Packages) > 0 {
			if s.Packages = w.In(module, s.Packages); len(s.Packages) > 0 {
				own = append(own, s)
			}
		}
	}
	return own
}

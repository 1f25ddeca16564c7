// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/command"
)

// Help by a command of its own, and completion: what may follow the words of a line, and that the
// script for bash asks for that.

// helped runs a program with some of the commands.
func helped(args ...string) (status int, stdout, stderr string) {
	return output(command.Program{Name: "quorate", Help: "A cluster toolkit.", Commands: []command.Command{
		{Name: "completion", Help: "Completion", Args: &command.Completion{}},
		{Name: "health", Help: "Health", Args: &command.Health{}},
		{Name: "help", Help: "Help", Args: &command.HelpOf{}},
		{Name: "registry", Help: "Registry", Args: &command.Registry{}},
		{Name: "reload", Help: "Reload", Args: &command.Reload{}},
	}}, args...)
}

func TestHelpIsACommandToo(t *testing.T) {
	for with, without := range map[string]string{"help": "", "help health": "health -h", "help registry find": "registry find -h", "help help": "help -h"} {
		status, stdout, stderr := helped(strings.Fields(with)...)
		require.Equal(t, command.StatusOK, status, stderr)
		_, want, _ := helped(strings.Fields(without)...)
		require.Equal(t, want, stdout)
		fits(t, stdout)
	}
	status, _, stderr := helped("help", "nothing")
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, stderr, "nothing")
}

func TestWordsThatMayComeNext(t *testing.T) {
	for line, want := range map[string]string{
		"":                                  "completion health help registry reload",
		"re":                                "registry reload",
		"registry|":                         "find names why",
		"registry|fi":                       "find",
		"registry|find|mail|":               "",
		"health|":                           "live ready startup",
		"health|live|":                      "",
		"health|-node|":                     "",
		"health|-node|x|l":                  "live",
		"health|-node=x|l":                  "live",
		"health|--json|l":                   "live",
		"health|-n":                         "--node",
		"health|--to":                       "--token-file",
		"health|-":                          "--authorities --certificate --help --json --key --node --timeout --token-file",
		"completion|":                       "bash fish zsh",
		"nothing|":                          "completion health help registry reload",
		"reload|-node|-token-file|-token-f": "--token-file",
	} {
		status, stdout, stderr := helped(append([]string{"__complete"}, strings.Split(line, "|")...)...)
		require.Equal(t, command.StatusOK, status, stderr)
		require.Equal(t, want, strings.Join(strings.Fields(stdout), " "), line)
	}
	status, stdout, _ := helped("__complete")
	require.Equal(t, command.StatusOK, status)
	require.Contains(t, stdout, "health\n")
}

// The script for bash hands over the words of the line, and takes what the program answers.
func TestTheScriptAsksTheProgram(t *testing.T) {
	for _, shell := range []string{"zsh", "fish"} {
		status, stdout, _ := helped("completion", shell)
		require.Equal(t, command.StatusOK, status)
		require.Contains(t, stdout, "__complete")
	}
	status, _, _ := helped("completion", "tcsh")
	require.Equal(t, command.StatusUsage, status)
	status, script, _ := helped("completion", "bash")
	require.Equal(t, command.StatusOK, status)
	if runtime.GOOS == "windows" {
		return // It has no bash.
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "quorate")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"), 0o700))
	line := script + "COMP_WORDS=('" + program + "' plugin 'a b' '') COMP_CWORD=3; _quorate; printf '<%s>' \"${COMPREPLY[@]}\""
	got, err := exec.CommandContext(t.Context(), "bash", "-c", line).CombinedOutput()
	require.NoError(t, err, string(got))
	require.Equal(t, "<__complete><plugin><a b>", string(got), "the last word is empty")
}

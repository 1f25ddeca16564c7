// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package command is the frame of the quorate command line: flags, help, exit status, and
// the layout of output for people and for programs.
//
// A program lists its commands in main and hands them to [Program.Run]. A command is a
// struct whose tags describe its arguments (see the kong library) and that has a method
// Run(*Session) error. A command gets everything from its session and nothing is global,
// so it is tested by running it.
//
// Long flags may be written with one hyphen or with two: -nodes 5, --nodes=5.
package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// The exit statuses of a program.
const (
	StatusOK     = 0 // done
	StatusFailed = 1 // the command was tried and failed
	StatusUsage  = 2 // the arguments or the input are wrong
)

// columns is the width of the help, that of the narrowest common terminal.
const columns = 80

// Command is one command of a program.
type Command struct {
	Name string
	Help string // one line, without a full stop
	Args any    // pointer to a struct with kong tags and Run(*Session) error
}

// Program is a command line.
type Program struct {
	Name     string
	Help     string
	Commands []Command
}

// Session is what a running command works with.
type Session struct {
	Stdout io.Writer
	Stderr io.Writer
	JSON   bool // print one JSON value instead of text
	Colour bool // Stdout is a terminal that shows colours
}

// RejectedError is the error of a command whose input is wrong; the exit status is
// [StatusUsage]. If the text is empty, the command has reported everything itself.
type RejectedError struct{ Text string }

// Error returns the text.
func (r RejectedError) Error() string { return r.Text }

// PrintJSON writes a value as indented JSON.
func (s *Session) PrintJSON(value any) error {
	encoder := json.NewEncoder(s.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// Paint returns text in a colour of the terminal (31 red, 32 green), or unchanged if the
// output shows no colours.
func (s *Session) Paint(colour int, text string) string {
	if !s.Colour {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, text)
}

// exit carries an exit status out of kong, which wants to end the process after printing
// help.
type exit int

// Run runs the command that args name and returns the exit status. Errors are written to
// stderr.
func (p Program) Run(args []string, stdout, stderr io.Writer) (status int) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exit:
			status = int(r)
		default:
			panic(r)
		}
	}()
	var global struct {
		JSON bool `help:"Print JSON."`
	}
	options := []kong.Option{
		kong.Name(p.Name), kong.Description(p.Help), kong.Writers(stdout, stderr),
		kong.Exit(func(status int) { panic(exit(status)) }),
		kong.WithHyphenPrefixedParameters(true), // -seed -7 is a seed
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: columns}),
	}
	for _, c := range p.Commands {
		options = append(options, kong.DynamicCommand(c.Name, c.Help, "", c.Args))
	}
	parser, err := kong.New(&global, options...)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return StatusFailed
	}
	if len(args) > 0 && args[0] == completing {
		for _, word := range candidates(parser.Model.Node, args[1:]) {
			fmt.Fprintln(stdout, word)
		}
		return StatusOK
	}
	args = p.helped(args)
	parsed, err := parser.Parse(doubleHyphens(args))
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v; see %s -h\n", p.Name, err, p.Name)
		return StatusUsage
	}
	session := &Session{Stdout: stdout, Stderr: stderr, JSON: global.JSON, Colour: colours(stdout)}
	return p.outcome(parsed.Run(session), stderr)
}

// helped makes a call for help of a call without a command, and of that of the command help.
func (p Program) helped(args []string) []string {
	asks := len(args) > 0 && args[0] == "help" && slices.ContainsFunc(p.Commands, func(c Command) bool { return c.Name == "help" })
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case asks && (len(args) == 1 || !strings.HasPrefix(args[1], "-")):
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

func (p Program) outcome(err error, stderr io.Writer) int {
	if err == nil {
		return StatusOK
	}
	if text := err.Error(); text != "" {
		fmt.Fprintf(stderr, "%s: %s\n", p.Name, text)
	}
	if rejected := (RejectedError{}); errors.As(err, &rejected) {
		return StatusUsage
	}
	return StatusFailed
}

// doubleHyphens turns -nodes into --nodes. One letter after a hyphen, and a
// negative number, are left alone, and so is everything after "--".
func doubleHyphens(args []string) []string {
	long := regexp.MustCompile(`^-[a-z][a-z-]+(=.*)?$`)
	out := make([]string, len(args))
	for i, arg := range args {
		if arg == "--" {
			copy(out[i:], args[i:])
			break
		}
		if out[i] = arg; long.MatchString(arg) {
			out[i] = "-" + arg
		}
	}
	return out
}

// colours reports whether w is a terminal, and its user has not asked for plain
// text in the way that no-color.org describes.
func colours(w io.Writer) bool {
	return terminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Terminal reports whether a file is a terminal, or another device of characters.
func Terminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

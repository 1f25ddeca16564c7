// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command inventory is a discovery plugin that asks a program of the operator, such as the script
// of an inventory, for the contact points of a service. The program gets the name of the service
// as its last argument, and prints one "host:port" a line; lines that begin with # are comments.
package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
)

// maxOutput is how much of what the program prints is read.
const maxOutput = 1 << 20

// settings are the settings under plugins.<name>.settings.
type settings struct {
	Command []string      // The program, by its absolute path, and its arguments.
	Timeout time.Duration // How long the program may run: above 0, by default 3 s.
}

// SetDefaults sets the timeout.
func (s *settings) SetDefaults() { s.Timeout = 3 * time.Second }

// inventory asks the program for each lookup.
type inventory struct{ settings }

func newInventory(s settings) (discovery.Discovery, error) {
	switch {
	case len(s.Command) == 0 || !strings.HasPrefix(s.Command[0], "/"):
		return nil, plugins.SettingError{Key: "command", Reason: "it must begin with the absolute path of a program"}
	case s.Timeout <= 0:
		return nil, plugins.SettingError{Key: "timeout", Reason: fmt.Sprintf("%v is not above 0s", s.Timeout)}
	}
	return &inventory{s}, nil
}

// Class promises nothing: what the program prints may change.
func (i *inventory) Class() discovery.Class { return discovery.Class{} }

// Lookup runs the program, and reads what it prints.
func (i *inventory) Lookup(ctx context.Context, q discovery.Query) (discovery.Targets, error) {
	ctx, cancel := context.WithTimeout(ctx, i.Timeout)
	defer cancel()
	var out, trouble bounded
	program := exec.CommandContext(ctx, i.Command[0], append(i.Command[1:len(i.Command):len(i.Command)], q.Service)...)
	program.Stdout, program.Stderr = &out, &trouble
	program.WaitDelay = time.Second // For children that keep the output open.
	switch err := program.Run(); {
	case ctx.Err() != nil:
		return discovery.Targets{}, fmt.Errorf("%s: %w", i.Command[0], ctx.Err())
	case err != nil:
		first, _, _ := strings.Cut(trouble.String(), "\n")
		return discovery.Targets{}, fmt.Errorf("%s: %w: %s", i.Command[0], err, first)
	case out.full:
		return discovery.Targets{}, fmt.Errorf("%s prints more than %d bytes", i.Command[0], maxOutput)
	}
	list, err := read(out.String())
	return discovery.Targets{List: list, Reason: "printed by " + i.Command[0]}, err
}

// read returns the contact points of a text, each once.
func read(text string) ([]discovery.Target, error) {
	var list []discovery.Target
	var faults []error
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		target, err := discovery.ParseTarget(line)
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", number+1, err))
			continue
		}
		list = append(list, target)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...) // A list with a wrong line may lack a right one.
	}
	return discovery.Distinct(list)
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	text []byte
	full bool // There was more.
}

func (b *bounded) Write(p []byte) (int, error) {
	kept := p[:min(len(p), maxOutput-len(b.text))]
	b.full = b.full || len(kept) < len(p)
	b.text = append(b.text, kept...)
	return len(p), nil
}

func (b *bounded) String() string { return string(b.text) }

func main() {
	sdk.Serve(sdk.Discovery(newInventory), sdk.WithName("inventory"), sdk.WithVersion("1.0.0"))
}

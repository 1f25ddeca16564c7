// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command served is keep-majority as a plugin, served by the SDK, with settings for
// the tests of the host.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/plugins/sdk"
)

type settings struct {
	Greeting string        `json:"greeting" meaning:"What is logged for each question."`
	Delay    time.Duration `json:"delay"`
	Panic    bool          `json:"panic"`
}

// JSONSchema is a schema that is not that of the type, if the test says so.
func (s settings) JSONSchema() []byte {
	if os.Getenv("SCHEMA") == "panic" {
		panic("as the environment says")
	}
	return []byte(os.Getenv("SCHEMA"))
}

// Validate is called by the SDK.
func (s settings) Validate() error {
	if s.Delay < 0 {
		return errors.New("delay: is negative")
	}
	return nil
}

type provider struct {
	downing.KeepMajority
	settings settings
}

func (p *provider) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	slog.Info(p.settings.Greeting, "members", len(v.Members))
	if p.settings.Panic {
		panic("as the settings say")
	}
	select {
	case <-time.After(p.settings.Delay):
		return p.KeepMajority.Decide(ctx, v)
	case <-ctx.Done():
		return downing.Decision{}, ctx.Err()
	}
}

// leaveBehind starts a process in the group of the plugin and one outside of it, and
// writes their ids into a file.
func leaveBehind(file string) error {
	inside, outside := exec.Command("sleep", "300"), exec.Command("sleep", "301")
	outside.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := errors.Join(inside.Start(), outside.Start()); err != nil {
		return err
	}
	return os.WriteFile(file, fmt.Appendf(nil, "%d %d", inside.Process.Pid, outside.Process.Pid), 0o600)
}

func main() {
	if file := os.Getenv("LEAVE_BEHIND"); file != "" {
		if err := leaveBehind(file); err != nil {
			panic(err)
		}
	}
	sdk.Serve(sdk.Downing(func(s settings) (downing.Provider, error) { return &provider{settings: s}, nil }),
		sdk.WithName("served"), sdk.WithVersion("1.0.0"))
}

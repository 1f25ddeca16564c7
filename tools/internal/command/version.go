// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is the command that says what the program was built from.
type Version struct{}

// Help is the text after the one-line help.
func (*Version) Help() string {
	return "Examples:\n  quorate version\n  quorate --json version"
}

// Build is what a program was built from.
type Build struct {
	Version  string `json:"version"`            // of the module, "(devel)" in a work tree
	Revision string `json:"revision,omitempty"` // commit, if the build knew it
	Modified bool   `json:"modified,omitempty"` // the work tree had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Run prints the build.
func (*Version) Run(s *Session) error {
	build := Build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			build.Version = info.Main.Version
		}
		for _, setting := range info.Settings {
			switch setting.Key {
			case "vcs.revision":
				build.Revision = setting.Value
			case "vcs.modified":
				build.Modified = setting.Value == "true"
			}
		}
	}
	if s.JSON {
		return s.PrintJSON(build)
	}
	line := "quorate " + build.Version
	if build.Revision != "" {
		line += " " + build.Revision
	}
	if build.Modified {
		line += " (modified)"
	}
	fmt.Fprintf(s.Stdout, "%s, %s, %s\n", line, build.Go, build.Platform)
	return nil
}

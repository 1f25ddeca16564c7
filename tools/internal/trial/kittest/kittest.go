// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package kittest runs the conformance kit of plugins outside of `go test`, in a process that does
// nothing else: [Run] ends it.
package kittest

import (
	"flag"
	"regexp"
	"testing"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/plugintest"
)

// Root is the name of the test that has the parts of the kit below it.
const Root = "kit"

// Run runs the parts of the kit that match a pattern, and ends the process: with 0 if all have
// passed. It returns only the error by which nothing was run.
func Run(c plugins.Config, calls int, pattern string) error {
	testing.Init()
	for name, value := range map[string]string{"test.v": "test2json", "test.run": pattern} {
		if err := flag.Set(name, value); err != nil {
			return err
		}
	}
	if err := flag.CommandLine.Parse(nil); err != nil {
		return err
	}
	testing.Main(regexp.MatchString, []testing.InternalTest{{
		Name: Root, F: func(t *testing.T) { t.Helper(); plugintest.Test(t, c, plugintest.Calls(calls)) },
	}}, nil, nil)
	return nil
}

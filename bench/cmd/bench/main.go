// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what a cluster does in a second, beside what the
// machine could do at most. Its help has examples:
//
//	bench -h
package main

import (
	"os"

	"github.com/quorate/quorate/bench/internal/experiments"
	"github.com/quorate/quorate/bench/internal/program"
)

func main() {
	p := program.Program{Name: "bench", Groups: experiments.Groups(), Servers: experiments.Servers(), Plugins: experiments.Plugins()}
	os.Exit(p.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

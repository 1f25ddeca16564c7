// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command peers measures Quorate beside other libraries of actors and of membership, with one harness for all. Its
// help has examples:
//
//	peers -h
package main

import (
	"os"

	"github.com/quorate/quorate/bench/internal/program"
	"github.com/quorate/quorate/bench/peers/internal/groups"
)

func main() {
	p := program.Program{Name: "peers", Groups: groups.Groups(), Servers: groups.Servers()}
	os.Exit(p.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command module makes a module of this repository, or completes what follows from the code of all: the requirements of
// siblings, their replaces, the table of modules in docs/architecture.md, and that of docs/compatibility.md.
//
//	module -dir discovery/zookeeper -about "finds them in ZooKeeper"
//	module
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/quorate/quorate/tools/internal/compatibility"
	"github.com/quorate/quorate/tools/internal/modules"
)

func main() {
	root := flag.String("root", ".", "the repository's root directory")
	dir := flag.String("dir", "", "the directory of a new module, below the root; none is made without it")
	about := flag.String("about", "", "what the new module is for, in half a sentence")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*root, *dir, *about); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root, dir, about string) error {
	if dir != "" {
		if err := modules.Create(root, dir, about); err != nil {
			return err
		}
		fmt.Printf("made %s: write its code, then make tidy api; what it promises is a row in docs/versioning.md\n", dir)
	}
	return errors.Join(modules.Derive(root), compatibility.Derive(root))
}

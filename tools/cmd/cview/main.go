// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command cview publishes the work tree as it stands, at one made-up version,
// into a directory that can serve as GOPROXY: the consumer's view of it.
//
//	cview -repo . -version v0.0.1-local.1 -out /tmp/proxy
//	GOWORK=off GOPROXY=file:///tmp/proxy,https://proxy.golang.org \
//	  GONOSUMDB='github.com/quorate/*' go get github.com/quorate/quorate/fd@v0.0.1-local.1
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/quorate/quorate/tools/internal/publish"
)

func main() {
	repo := flag.String("repo", ".", "the repository's root directory")
	version := flag.String("version", "", "the version to publish under, such as v0.0.1-local.1; a new one each time")
	out := flag.String("out", "", "the directory to write to")
	flag.Parse()
	if *version == "" || *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	paths, err := publish.Tree(context.Background(), *repo, *version, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cview:", err)
		os.Exit(1)
	}
	fmt.Printf("%d modules at %s\n", len(paths), *version)
}

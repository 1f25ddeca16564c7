// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/file"
)

// A script keeps the list of nodes.
func ExampleDiscovery_Lookup() {
	dir, err := os.MkdirTemp("", "nodes")
	if err != nil {
		panic(err)
	}
	config := file.Default()
	config.Path = filepath.Join(dir, "nodes")
	if err := os.WriteFile(config.Path, []byte("# the bank\n10.0.0.1:7946\n10.0.0.2:7946\n"), 0o600); err != nil {
		panic(err)
	}
	found, err := file.New(config)
	if err != nil {
		panic(err)
	}
	targets, err := found.Lookup(context.Background(), discovery.Query{})
	fmt.Println(targets.List[0], targets.List[1], err)
	fmt.Println(os.RemoveAll(dir))
	// Output:
	// 10.0.0.1:7946 10.0.0.2:7946 <nil>
	// <nil>
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/cluster"
)

// Twins is the section "twins" of a program that runs twins of machines.
type Twins struct {
	// Repeat is how often a twin reports.
	Repeat time.Duration `koanf:"repeat" reload:"yes" range:"100ms..1h" meaning:"How often a twin reports."`
}

// Validate refuses what a program could not run with.
func (t Twins) Validate() error {
	if t.Repeat < 100*time.Millisecond || t.Repeat > time.Hour {
		return errors.New("repeat: is not from 100ms to 1h")
	}
	return nil
}

// A program has a section of its own in the file of the node, and takes its changes
// over while the node runs.
func ExampleWithSection() {
	dir, err := os.MkdirTemp("", "twins")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "cluster.yaml")
	write := func(section string) {
		text := "cluster: {name: example}\nnode: {address: 127.0.0.1:7946}\ntransport: {bind: \"127.0.0.1:0\"}\n" + section + "\n"
		_ = os.WriteFile(path, []byte(text), 0o600)
	}
	write("twins: {repeat: 2s}")
	twins := Twins{Repeat: time.Second} // The defaults.
	reload := func(_ context.Context, from, to Twins) (cluster.Prepared, error) {
		return cluster.Prepared{Commit: func() { fmt.Println("from", from.Repeat, "to", to.Repeat) }}, nil
	}
	node, err := cluster.Start(context.Background(), cluster.WithFile(path), cluster.WithSection("twins", &twins, reload),
		cluster.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = node.Close() }()
	fmt.Println("begins with", twins.Repeat)
	write("twins: {repeat: 5s}")
	fmt.Println(node.Reload(context.Background()))
	write("twins: {repaet: 9s}")
	fmt.Println(filepath.Base(node.Reload(context.Background()).Error()))
	// Output:
	// begins with 2s
	// from 2s to 5s
	// <nil>
	// cluster.yaml:4: twins.repaet: unknown key; did you mean "repeat"?
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/machine/directory"
)

func Example() {
	dir, err := os.MkdirTemp("", "node")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	lock, err := directory.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		log.Fatal(err)
	}
	_, err = directory.Lock(filepath.Join(dir, "lock"))
	fmt.Println("in use:", errors.Is(err, directory.ErrInUse))

	// The name survives a crash of the machine once the directory is synced.
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "record"), []byte("7"), 0o600),
		directory.Sync(dir),
	)
	fmt.Println("written:", err == nil)
	fmt.Println("given back:", lock.Close() == nil)
	// Output:
	// in use: true
	// written: true
	// given back: true
}

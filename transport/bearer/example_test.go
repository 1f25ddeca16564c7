// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bearer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/transport/bearer"
)

// The file has the checksum of a token: here that of "correct-horse-battery-staple".
func ExampleRead() {
	dir, err := os.MkdirTemp("", "tokens-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // It is a directory of this example.
	path := filepath.Join(dir, "tokens")
	line := "alice never 87cbebfeebc05f7c54ac9336c4b4bbec831227a641951a4bde7edd56020f8590\n"
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	tokens, err := bearer.Read(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tokens.Owner("correct-horse-battery-staple", time.Now()))
	fmt.Println(tokens.Owner("another one", time.Now()))
	// Output:
	// alice <nil>
	//  the token is not one of this node's
}

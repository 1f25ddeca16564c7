// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package toml_test

import (
	"fmt"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/toml"
)

// A text in TOML, with a misspelt key. Files are read by a config.Loader with the format
// among its Formats.
func ExampleFormat() {
	file, err := config.Parse("bank.toml", []byte("[node]\nzone = 'eu'\nrole = 'backend'\n"), toml.Format())
	if err != nil {
		fmt.Println(err)
		return
	}
	var node struct {
		Zone string   `koanf:"zone"`
		Role []string `koanf:"roles"`
	}
	fmt.Println(file.Decode("node", &node))
	// Output: bank.toml:3: node.role: unknown key; did you mean "roles"?
}

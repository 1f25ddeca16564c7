// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugins_test

import (
	"fmt"

	"github.com/quorate/quorate/plugins"
)

// Every fault of a configuration is reported, with its key and its cure.
func ExampleConfig_Validate() {
	c := plugins.Default()
	c.Policy, c.Path = "downin", "/usr/lib/bank/witness"
	fmt.Println(c.Validate())
	// Output:
	// policy: "downin" is none of [downing allocation failure-detector join-decider discovery]
	// sha256: is missing: without it, whoever can write the file decides for the cluster; give the checksum of the file, or unpinned: true while developing
}

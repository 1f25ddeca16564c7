// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package manual_test

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/config/manual"
)

// A program prints the reference of its own section.
func ExampleSection() {
	type twins struct {
		Repeat time.Duration `koanf:"repeat" reload:"yes" range:"100ms..1h" meaning:"How often a twin reports."`
		Most   int           `koanf:"most" unit:"twins" range:"1..10000" meaning:"How many twins one node runs."`
	}
	settings, err := manual.Section("twins", "The twins that this program runs.", twins{Repeat: time.Second, Most: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(manual.Markdown(settings))
	// Output:
	// ### `twins`
	//
	// The twins that this program runs.
	//
	// | key | type | default | values | reload | meaning |
	// | --- | --- | --- | --- | --- | --- |
	// | `twins.repeat` | duration | `1s` | from 100ms to 1h | yes | How often a twin reports. |
	// | `twins.most` | whole number | `100` | from 1 to 10000 twins |  | How many twins one node runs. |
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package proto_test

import (
	"fmt"
	"io/fs"

	"github.com/quorate/quorate/plugins/proto"
)

func ExampleFiles() {
	names, err := fs.Glob(proto.Files(), "quorate/plugin/v1/*.proto")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		fmt.Println(name)
	}
	// Output:
	// quorate/plugin/v1/allocation.proto
	// quorate/plugin/v1/discovery.proto
	// quorate/plugin/v1/downing.proto
	// quorate/plugin/v1/failuredetector.proto
	// quorate/plugin/v1/joindecider.proto
	// quorate/plugin/v1/plugin.proto
}

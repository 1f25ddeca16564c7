// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest_test

import (
	"testing"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/plugintest"
)

// A plugin passes the kit in a test: this is the body of func TestThePlugin(t *testing.T),
// beside the directory of the plugin.
func ExampleTest() {
	t := new(testing.T) // The parameter of the test.
	plugintest.Test(t, plugins.Config{
		Policy: plugins.Downing, Path: plugintest.Build(t, "./cmd/witness"),
		Settings: map[string]any{"url": "https://witness.internal/vote"},
	})
}

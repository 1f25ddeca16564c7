// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package configtest_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/configtest"
)

// A format of your own passes the suite in a test: this is the body of func
// TestContract(t *testing.T).
func ExampleTestFormat() {
	t := new(testing.T)      // The parameter of the test.
	var format config.Format // Yours, of lines such as "name" = {"a" = 1}.
	configtest.TestFormat(t, format, func(tree map[string]any) string {
		var text strings.Builder
		for key, value := range tree {
			text.WriteString(configtest.Entry(key, value, " = ") + "\n")
		}
		return text.String()
	})
}

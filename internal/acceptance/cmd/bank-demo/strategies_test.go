// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMakeBuildsWhatTheDemoRuns reads which programs the Makefile builds before it runs the demo: all that the demo
// starts are among them.
func TestMakeBuildsWhatTheDemoRuns(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "Makefile"))
	require.NoError(t, err)
	for target, programs := range map[string][]string{"demo": nil, "demo-plugin": pluginPrograms()} {
		call := regexp.MustCompile(`(?m)^` + target + `:.*\n\t\$\(call demo-build,(.*)\)$`).FindSubmatch(text)
		require.NotNil(t, call, target)
		var built []string
		for dir := range strings.FieldsSeq(string(call[1])) {
			built = append(built, filepath.Base(dir))
		}
		require.ElementsMatch(t, append([]string{"bank", "bank-demo"}, programs...), built, target)
	}
}

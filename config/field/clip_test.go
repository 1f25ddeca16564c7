// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package field_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config/field"
)

func TestLongTextsAreCutBetweenCharacters(t *testing.T) {
	require.Equal(t, "short", field.Clip("short"))
	require.Equal(t, strings.Repeat("x", 200), field.Clip(strings.Repeat("x", 200)))
	require.Equal(t, strings.Repeat("x", 199)+"...", field.Clip(strings.Repeat("x", 199)+"ßß"))
}

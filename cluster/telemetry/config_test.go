// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster/telemetry"
)

// The default is to show nothing.
func TestNothingIsShownByDefault(t *testing.T) {
	require.NoError(t, telemetry.Default().Validate())
	require.Equal(t, telemetry.None, telemetry.Default().Metrics)
	require.EqualError(t, telemetry.Config{Metrics: "x"}.Validate(), `metrics: "x" is neither none nor prometheus`)
}

// The word for metrics in a section is none or prometheus; any other is refused.
func ExampleConfig_Validate() {
	section := telemetry.Default()
	section.Metrics = "promteheus"
	fmt.Println(section.Validate())
	// Output: metrics: "promteheus" is neither none nor prometheus
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/services/registry"
)

// A consistency that nobody knows is refused, and named.
func TestConfig(t *testing.T) {
	for _, name := range []string{"local", "majority", "all"} {
		require.NoError(t, registry.Config{Consistency: name}.Validate())
	}
	require.NoError(t, registry.Default().Validate())
	require.EqualError(t, registry.Config{}.Validate(), `consistency: "" is none of local, majority, all`)
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sdktest_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/plugins/sdk"
	"github.com/quorate/quorate/plugins/sdk/sdktest"
)

// The suite of a strategy, asked over the wire as a cluster asks: this is the body of
// func TestContractOverTheWire(t *testing.T).
func ExampleDowning() {
	t := new(testing.T) // The parameter of the test.
	type settings struct{ Grace time.Duration }
	strategy := sdk.Downing(func(settings) (downing.Provider, error) { return downing.KeepMajority{}, nil })
	downingtest.TestProvider(t, func(tb testing.TB) downing.Provider {
		tb.Helper()
		return sdktest.Downing(tb, strategy, map[string]any{"grace": "10s"})
	})
}

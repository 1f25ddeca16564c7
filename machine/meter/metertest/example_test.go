// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package metertest_test

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/machine/meter/metertest"
)

// A test of the measurements of a part: this is the body of func TestMetrics(t
// *testing.T).
func ExampleReader_Value() {
	t := new(testing.T) // The parameter of the test.
	reader := metertest.New()
	refused, err := reader.Provider().Meter("example.org/bank").Int64Counter("bank.refused")
	if err != nil {
		t.Fatal(err)
	}
	overdrawn := attribute.String("error.type", "overdrawn")
	refused.Add(t.Context(), 1, metric.WithAttributes(overdrawn))
	if n := reader.Value(t, "bank.refused", overdrawn); n != 1 {
		t.Errorf("%v calls were refused, want 1", n)
	}
}

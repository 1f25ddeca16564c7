// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"testing"

	"github.com/quorate/quorate/discovery"
)

func BenchmarkParseTarget(b *testing.B) {
	for _, text := range []string{"node-1.quorate.svc.cluster.local:7946", "10.0.0.1:7946", "[fe80::1]:7946"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := discovery.ParseTarget(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

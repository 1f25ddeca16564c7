// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/plugins/sdk"
)

// settings are what an operator writes under plugins.<name>.settings.
type settings struct {
	Grace time.Duration `range:"0s..1h" meaning:"How long a member may be unreachable."`
}

// patient lets keep-majority decide once some member has been unreachable for long.
type patient struct{ grace time.Duration }

// Class says that what is decided depends on time, so it is not pure.
func (p *patient) Class() downing.Class { return downing.Class{MajorityOnly: true} }

// Decide waits by downing no node now.
func (p *patient) Decide(_ context.Context, v downing.View) (downing.Decision, error) {
	if v.Unstable < p.grace {
		return downing.Decision{Reason: fmt.Sprintf("patient: unreachable for %v of %v", v.Unstable, p.grace)}, nil
	}
	return downing.KeepMajority{}.DecideNow(v)
}

func newPatient(s settings) (downing.Provider, error) { return &patient{grace: s.Grace}, nil }

// The function main of a plugin. It serves when a node has started it; here it is not run.
func ExampleServe() {
	main := func() {
		sdk.Serve(sdk.Downing(newPatient), sdk.WithName("patient"), sdk.WithVersion("1.0.0"))
	}
	_ = main
	// Output:
}

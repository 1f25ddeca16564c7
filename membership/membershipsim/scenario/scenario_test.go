// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership/membershipsim/scenario"
)

// What the worlds of storms find is for the seeds of the tests above to say.
//
// covers F8, F9, F10, F28, F31, F32, I30.
func TestEveryScenarioWritesTheSameBytesTwice(t *testing.T) {
	for _, s := range scenario.All() {
		t.Run(s.Name, func(t *testing.T) {
			report := func() string {
				var out strings.Builder
				ok, err := scenario.Report(&out, scenario.Options{Scenario: s.Name, Nodes: 5, Seed: 3, Duration: time.Minute})
				require.NoError(t, err)
				require.True(t, ok || s.Storms(), out.String())
				return out.String()
			}
			first := report()
			require.Equal(t, first, report())
			if !s.Storms() {
				require.Contains(t, first, "ok   scenario="+s.Name+" seed=3 nodes=5")
			}
			require.NotEmpty(t, s.About)
		})
	}
}

func TestViolationIsReportedWithItsReplay(t *testing.T) {
	var out strings.Builder
	// Nobody can settle in a tenth of a second.
	ok, err := scenario.Report(&out, scenario.Options{
		Scenario: "steady", Seed: 0x2a, Duration: time.Millisecond, Settle: 100 * time.Millisecond,
	})
	require.NoError(t, err)
	require.False(t, ok)
	require.Contains(t, out.String(), "replay: quorate simulate -seed 42 -scenario steady -nodes 7")
	require.Contains(t, out.String(), "\nFAIL seed=42\n")
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := scenario.Run(scenario.Options{Scenario: "nonsense"})
	require.ErrorIs(t, err, scenario.ErrUnknown)
	_, err = scenario.Run(scenario.Options{Nodes: 10_001})
	require.ErrorContains(t, err, "want 1 to 10000")
	_, err = scenario.Report(failing{}, scenario.Options{Scenario: "steady", Duration: time.Second, Nodes: 1})
	require.ErrorIs(t, err, errWrite)
}

var errWrite = errors.New("disk full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errWrite }

func ExampleReport() {
	ok, err := scenario.Report(os.Stdout, scenario.Options{Scenario: "nonsense"})
	if err != nil {
		_, _ = os.Stdout.WriteString(err.Error())
	}
	_ = ok
	// Output: scenario: unknown: "nonsense"
}

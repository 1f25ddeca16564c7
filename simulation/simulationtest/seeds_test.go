// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulationtest_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// ended is a test that notes with what words it was ended.
type ended struct {
	testing.TB
	words string
}

func (e *ended) Fatalf(format string, values ...any) {
	e.words = fmt.Sprintf(format, values...)
	runtime.Goexit()
}

// endOf returns the words with which a test was ended, none if it came to its end.
func endOf(t *testing.T, test func(t testing.TB)) string {
	e, done := &ended{TB: t}, make(chan struct{})
	go func() { // Ends with the test, or with Fatalf; the line below waits for it.
		defer close(done)
		test(e)
	}()
	<-done
	return e.words
}

func TestTheEnvironmentChoosesTheSeeds(t *testing.T) {
	for _, c := range []struct {
		seed, first, seeds string
		wantFirst, want    uint64
	}{
		{"", "", "", 0, 8},
		{"", "", "300", 0, 300},
		{"", "1000", "", 1000, 8},
		{"", "1000", "300", 1000, 300},
		{"17", "1000", "300", 17, 1},
		{"0x11", "", "", 17, 1},
		{"", "", "0", 0, 0},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Setenv("QUORATE_SEED", c.seed)
			t.Setenv("QUORATE_FIRST_SEED", c.first)
			t.Setenv("QUORATE_SEEDS", c.seeds)
			first, n := simulationtest.Seeds(t, 8)
			require.Equal(t, c.wantFirst, first)
			require.Equal(t, c.want, n)
		})
	}
}

func TestASeedThatIsNoNumberEndsTheTest(t *testing.T) {
	for _, variable := range []string{"QUORATE_SEED", "QUORATE_FIRST_SEED", "QUORATE_SEEDS"} {
		t.Run(variable, func(t *testing.T) {
			for _, other := range []string{"QUORATE_SEED", "QUORATE_FIRST_SEED", "QUORATE_SEEDS"} {
				t.Setenv(other, "")
			}
			t.Setenv(variable, "-3")
			words := endOf(t, func(t testing.TB) { simulationtest.Seeds(t, 8) })
			require.Contains(t, words, variable+"=-3")
		})
	}
}

func TestARunThatFailedSaysHowItIsRepeated(t *testing.T) {
	require.Empty(t, endOf(t, func(t testing.TB) { simulationtest.RequireRun(t, 17, nil) }))
	words := endOf(t, func(t testing.TB) { simulationtest.RequireRun(t, 17, errors.New("two homes")) })
	require.Equal(t, "two homes\nreplay: QUORATE_SEED=17 go test -run '^TestARunThatFailedSaysHowItIsRepeated$' "+
		"github.com/quorate/quorate/simulation/simulationtest", words)
}

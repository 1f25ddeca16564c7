// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPromiseIsNotJudgedOnABusyMachine(t *testing.T) {
	require.False(t, isBusy(busyStill.Milliseconds(), busyPercent))
	require.True(t, isBusy(busyStill.Milliseconds()+1, 0))
	require.True(t, isBusy(0, busyPercent+1))

	require.Equal(t, 359929450*time.Microsecond, parsePressure("some avg10=0.06 avg60=19.70 avg300=40.80 total=359929450\nfull avg10=0.00 total=1\n"))
	for _, other := range []string{"", "some", "some total=", "some total=x"} {
		require.Zero(t, parsePressure(other))
	}
}

func TestAMachineThatRunsDoesNotStandStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := watchMachine()
		time.AfterFunc(time.Minute, func() { close(m.stop) })
		<-m.done
		require.Zero(t, m.still.Load())
	})
}

// TestEachFigureHasItsLimit prints a verdict and its phases.
func TestEachFigureHasItsLimit(t *testing.T) {
	var out strings.Builder
	s := &printer{out: &out, begun: time.Now(), last: map[string]string{}}
	v := verdict{
		OK: true, RecoveredMax: 7640, StoodStill: 1200, Waited: 34, NotJudged: []string{"kill: longest gap 12000 ms, not below 10000"},
		Phases: map[string]*phase{string(killPlain): {Seconds: 9.8, Answered: 3000, LongestGap: 12000, FailedAsks: 3}, string(restartAll): {Seconds: 99.9, Answered: 99999, LongestGap: 99}},
	}
	s.summary(v)
	s.phases([]window{{name: string(killPlain)}, {name: string(restartAll)}}, v)
	for _, want := range []string{
		"lost                        0, allowed 0\n",
		"longest recovery          7.6 s from a kill to the last answer, allowed 10\n",
		"machine stood still       1.2 s in all\n",
		"programs waited          34 % of the time for a processor\n",
		"kill               9.8    3000     12.00 s   10.0 s       3                0\n",
		"rolling_restart   99.9   99999      0.10 s    0.5 s       0        0       0\n",
		"not judged (busy machine): kill: longest gap 12000 ms, not below 10000\n",
	} {
		require.Contains(t, out.String(), want)
	}
	for line := range strings.SplitSeq(out.String(), "\n") {
		require.LessOrEqual(t, len(line), columns, line)
	}
}

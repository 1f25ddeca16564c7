// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && unix

package machine

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
)

// A process with the clock and the counter of this machine is stopped while its goroutines
// look at a standing again and again, as the workers of a node do before each message, and
// goes on when the standing has ended. Nobody but those goroutines reads the clock, so that
// what they see first is the old reading and the counter.

// frozenChild is set in the environment of the process that is stopped.
const frozenChild = "QUORATE_FROZEN_CHILD"

// frozenStanding is how long the standing lasts in the process that is stopped.
const frozenStanding = time.Second

// looks are what the goroutines of the process have seen.
type looks struct {
	Unusable    string // Why there is no counter.
	Full        int    // Readings in full.
	Spared      int    // Looks without a reading of the clock.
	Late        int    // Looks that showed a standing after its end.
	LateBy      time.Duration
	EndsNoticed int // Goroutines that began a look after the end.
}

// TestFrozenChild is the process that is stopped.
func TestFrozenChild(*testing.T) {
	if os.Getenv(frozenChild) != "" {
		lookOn()
	}
}

// lookOn looks at a standing on two goroutines until its end, and prints what they saw.
func lookOn() {
	clock, sum := NewSystemClock(), looks{}
	if err := clock.UseCounter(); err != nil {
		sum.Unusable = err.Error()
	}
	for r := clock.Reader(); sum.Unusable == "" && r.Read().Full(); {
		sum.Full++ // Until the counter has been measured.
	}
	end := clock.Instant().Add(frozenStanding)
	fmt.Println("looking")
	var mu sync.Mutex
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() { // Waited for below; ends with the standing.
			own := lookUntil(clock, end)
			mu.Lock()
			defer mu.Unlock()
			sum.Full, sum.Spared, sum.Late = sum.Full+own.Full, sum.Spared+own.Spared, sum.Late+own.Late
			sum.LateBy, sum.EndsNoticed = max(sum.LateBy, own.LateBy), sum.EndsNoticed+1
		})
	}
	group.Wait()
	_ = json.NewEncoder(os.Stdout).Encode(sum) // Whoever reads finds nothing else then.
}

// lookUntil looks until the clock shows that the end has passed, and once more.
func lookUntil(clock *SystemClock, end Instant) (own looks) {
	for r := clock.Reader(); ; {
		before := clock.Instant()
		now := r.Read()
		if now.Full() {
			own.Full++
		} else {
			own.Spared++
		}
		if before > end {
			if now.NotAfter(end, FilterMargin) {
				own.Late, own.LateBy = 1, before.Sub(end)
			}
			return own
		}
	}
}

// TestAFrozenProcessKnowsOfItsPause stops a process for longer than its standing lasts: the
// first look of each goroutine afterwards shows none.
//
// covers F24, I14.
func TestAFrozenProcessKnowsOfItsPause(t *testing.T) {
	patience.Watch(t)
	spared, usable := 0, true
	for round := range 5 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFrozenChild$")
		cmd.Env, cmd.Stderr = append(os.Environ(), frozenChild+"=1"), os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewReader(out)
		_, err = lines.ReadString('\n')
		require.NoError(t, err)
		<-time.After(time.Duration(50+30*round) * time.Millisecond) //quorate:realtime It looks meanwhile.
		require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
		<-time.After(frozenStanding + time.Second) //quorate:realtime It stands still until its standing has ended.
		require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
		var sum looks
		require.NoError(t, json.NewDecoder(lines).Decode(&sum))
		require.NoError(t, cmd.Wait())
		t.Logf("%+v", sum)
		require.Zero(t, sum.Late, "the pause was not seen")
		require.Equal(t, 2, sum.EndsNoticed)
		require.NotZero(t, sum.Full)
		spared, usable = spared+sum.Spared, usable && sum.Unusable == ""
	}
	require.Equal(t, usable, spared > 0, "the counter spares readings where it can be used")
}

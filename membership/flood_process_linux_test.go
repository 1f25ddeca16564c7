// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package membership_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/quorate/quorate/transport/transporttest/strangertest"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// serveVariable asks the test binary to be a node.
const serveVariable = "QUORATE_TEST_SERVE"

// TestServe is the node of the process that [TestAFloodCostsLittleMemory] starts:
// it says who it is, and ends with its standard input.
func TestServe(t *testing.T) {
	if os.Getenv(serveVariable) == "" {
		return // This process is the test itself.
	}
	n, err := membership.Start(t.Context(), overGRPC(t), membership.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	require.NoError(t, n.AwaitUp(t.Context()))
	fmt.Println(n.Self())
	_, _ = io.Copy(io.Discard, os.Stdin)
	require.NoError(t, n.Err())
	require.NoError(t, n.Close())
}

// memoryOf returns a figure of a process's memory in bytes.
func memoryOf(t *testing.T, pid int, figure string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, figure+":"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			require.NoError(t, err)
			return kib << 10
		}
	}
	require.FailNow(t, "no such figure", figure)
	return 0
}

// floods are payloads of a given size in bytes that are made to cost their receiver as
// much as possible.
func floods(size int) [][]byte {
	within := func(value []byte, path ...protowire.Number) []byte {
		for _, n := range slices.Backward(path) {
			value = protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), value)
		}
		return value
	}
	zeros := make([]byte, size/3)
	rows := slices.Concat(within(zeros, 4), within(zeros, 5), within(zeros, 6))
	return [][]byte{
		within(rows, 11, 1, 3, 3),                                                             // Rows of observers.
		within(slices.Repeat(within(nil, 1), size/2), 11, 1, 2),                               // Hosts without a character.
		within(slices.Concat(within(zeros, 1), within(zeros, 2), within(zeros, 3)), 10, 1, 8), // Edits.
		within(slices.Repeat(within(nil, 1), size/2), 4, 5),                                   // Settings.
	}
}

// Strangers on sixteen connections send the most costly payloads, in messages of the
// largest size and of the largest size that is taken from strangers. The peak of memory
// is measured on a process of its own.
//
// covers I36, B7, B22.
func TestAFloodCostsLittleMemory(t *testing.T) {
	const connections, rounds, limit = 16, 6, 64 << 20
	node := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServe$", "-test.v")
	node.Env = append(os.Environ(), serveVariable+"=yes")
	in, err := node.StdinPipe()
	require.NoError(t, err)
	out, err := node.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, node.Start())
	var target gossip.NodeID
	for lines := bufio.NewScanner(out); target.IsZero() && lines.Scan(); {
		target, _ = gossip.ParseNodeID(lines.Text()) // Other lines are those of the test.
	}
	require.False(t, target.IsZero(), "the node says who it is")
	pid := node.Process.Pid
	idle := memoryOf(t, pid, "VmRSS")
	// Has the kernel forget the peak so far.
	require.NoError(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0))

	payloads := append(floods(4<<20-4096), append(floods(200<<10), floods(63<<10)...)...)
	var all sync.WaitGroup
	for i := range connections {
		all.Go(func() { // Ends when it has sent everything; waited for below.
			s := strangerAs(t, gossip.NodeID{Address: gossip.Address{Host: "127.0.0.1", Port: uint16(60000 + i)}, UID: gossip.UID(100 + i)})
			s.flood(target, rounds, payloads)
		})
	}
	all.Wait()
	peak := memoryOf(t, pid, "VmHWM")
	t.Logf("idle %d MiB, peak %d MiB", idle>>20, peak>>20)
	require.Less(t, peak-idle, limit)
	s := newStranger(t, func() []byte { return nil })
	s.say(s.open(target), 1, encoded(t, protocol.InitJoin{Attempt: 1})) // The node goes on.
	require.NoError(t, in.Close())
	_, _ = io.Copy(io.Discard, out)
	require.NoError(t, node.Wait())
}

// flood sends payloads over and over, on a new connection when one has been ended.
func (s *stranger) flood(to gossip.NodeID, rounds int, payloads [][]byte) {
	for round := range rounds {
		for i := range payloads {
			payload := payloads[(i+round)%len(payloads)]
			frame := strangertest.Frame(1, protocol.Service, payload)
			s.ID.UID += 1000 // Each time as somebody else.
			stream, end, err := s.Greet(s.t.Context(), to)
			if err == nil {
				_ = stream.SendMsg(frame) // It is refused in the middle.
				_ = stream.CloseSend()
				var answer []byte
				_ = stream.RecvMsg(&answer)
			}
			end()
		}
	}
}

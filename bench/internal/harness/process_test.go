// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The roles of the processes that these tests start.
const (
	roleEcho  = "echo"  // The process says hello, and answers each request with the request.
	roleFails = "fails" // The process ends with a message on its standard error.
)

// TestMain lets the test program play the roles.
func TestMain(m *testing.M) {
	if len(os.Args) != 3 || os.Args[1] != RoleFlag {
		os.Exit(m.Run())
	}
	if err := play(os.Args[2]); err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

func play(text string) error {
	var s Spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	if s.Role != roleEcho {
		return errors.New("out of order")
	}
	_, k := NewLink(context.Background(), Launcher{}, os.Stdin, os.Stdout)
	return k.Host("here", Answers{
		"one": func() (any, error) { return "one", nil },
		"two": func() (any, error) { return "two", nil },
	})
}

// launch starts this program in a role.
func launch(t *testing.T, role string) *Process {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	p, err := Launcher{Program: program}.Start(Spec{Role: role})
	require.NoError(t, err)
	t.Cleanup(p.Stop)
	return p
}

func TestAPeerAnswers(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	k := &Link{Launcher: Launcher{Program: program}}
	p, address, err := k.Peer(t.Context(), Spec{Role: roleEcho})
	require.NoError(t, err)
	defer p.Stop()
	require.Equal(t, "here", address)
	for _, request := range []string{"one", "two"} {
		var answer string
		require.NoError(t, p.Call(t.Context(), request, &answer))
		require.Equal(t, request, answer)
	}
}

// A process whose parent goes away ends by itself.
func TestAPeerEndsWithItsParent(t *testing.T) {
	p := launch(t, roleEcho)
	var first Hello
	require.NoError(t, p.Answer(t.Context(), &first))
	require.NoError(t, p.stdin.Close())
	<-p.gone
	require.Error(t, p.Answer(t.Context(), &first))
}

func TestAKilledProcessIsGone(t *testing.T) {
	p := launch(t, roleEcho)
	p.Kill()
	require.ErrorContains(t, p.Answer(t.Context(), new(Hello)), "process echo ended")
}

// The output of a process that fails reaches its parent.
func TestAFailureSaysWhy(t *testing.T) {
	p := launch(t, roleFails)
	require.ErrorContains(t, p.Answer(t.Context(), new(Hello)), "it said: out of order")
}

// Waiting for an answer ends with its context.
func TestAnswerEndsWithItsContext(t *testing.T) {
	p := launch(t, roleEcho)
	require.NoError(t, p.Answer(t.Context(), new(Hello)))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	require.ErrorContains(t, p.Answer(ctx, new(Hello)), "enough")
}

// Only the end of a process's output is kept.
func TestTailKeepsTheEnd(t *testing.T) {
	var kept tail
	require.Equal(t, "it said nothing", kept.String())
	for range tailBytes {
		_, err := kept.Write([]byte("ab"))
		require.NoError(t, err)
	}
	_, err := kept.Write([]byte("end"))
	require.NoError(t, err)
	require.Len(t, kept.kept, tailBytes)
	require.Contains(t, kept.String(), "bend")
}

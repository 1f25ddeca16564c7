// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clients_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/examples/clients"
	"github.com/quorate/quorate/examples/clients/bank"
	"github.com/quorate/quorate/rpc"
)

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

// blocks returns the blocks of code of one language on the page.
func blocks(t *testing.T, language string) (all []string) {
	t.Helper()
	for _, rest := range strings.Split(text(t, "../../docs/clients.md"), "\n```"+language+"\n")[1:] {
		block, _, ended := strings.Cut(rest, "```\n")
		require.True(t, ended)
		all = append(all, block)
	}
	return all
}

// What stands on the page is in the program, word for word but for the indentation.
func TestThePageShowsTheProgram(t *testing.T) {
	flat := func(s string) string {
		lines := strings.Split(strings.TrimSpace(s), "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		return strings.Join(lines, "\n")
	}
	program := flat(text(t, "clients.go")) + flat(text(t, "clients_test.go"))
	require.Len(t, blocks(t, "go"), 4)
	for _, block := range blocks(t, "go") {
		require.Contains(t, program, flat(block))
	}
	service := flat(text(t, "bank/bank.proto"))
	require.Len(t, blocks(t, "proto"), 1)
	require.Contains(t, service, flat(blocks(t, "proto")[0]))
}

// The node of the page, with the section that stands there, serves a member and a program that is none.
func TestTheProgramOfThePageRuns(t *testing.T) {
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	section := strings.Replace(blocks(t, "yaml")[0], "127.0.0.1:7947", "127.0.0.1:0", 1)
	file := filepath.Join(t.TempDir(), "node.yaml")
	require.NoError(t, os.WriteFile(file, []byte("cluster: {name: shop}\nnode: {address: \""+address+"\"}\nmembership: {seed-nodes: [\""+address+"\"]}\n"+section), 0o600))
	node, err := cluster.Start(t.Context(), cluster.WithFile(file))
	require.NoError(t, err)
	defer func() { require.NoError(t, node.Close()) }()
	require.NoError(t, node.AwaitUp(t.Context()))
	ctx := t.Context()

	accounts, err := clients.Host(node)
	require.NoError(t, err)
	balance, err := accounts.Deposit(ctx, "acct-42", &bank.DepositRequest{Cents: 100})
	require.NoError(t, err)
	require.EqualValues(t, 100, balance.GetCents())
	_, err = accounts.Deposit(ctx, "acct-42", &bank.DepositRequest{Cents: -1})
	fault, refused := errors.AsType[*rpc.Fault](err)
	require.True(t, refused && fault.Code == "bad-amount")
	require.NoError(t, accounts.Note(ctx, "acct-42", &bank.NoteRequest{Text: "a present"}))

	var out strings.Builder
	require.NoError(t, clients.Shop(ctx, &out, node.Gateway().Address()))
	require.Equal(t, "acct-42 has 600\n", out.String())
}

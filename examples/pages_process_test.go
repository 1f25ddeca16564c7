// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package examples_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
)

// The code on the pages about replicated data, sharding, singletons, deliveries and states is taken from the pages and
// run, in one program with a function for each block. Pages leave out what every reader can add: the checks of errors
// and the node itself: the test puts those in.

// block is the code of a page, as one function of the program.
type block struct {
	page string
	nth  int // Which of the blocks of the page, from 0.
	// before declares what the block leaves to the reader; dots stands for its line "...";
	// after prints what the block has led to.
	before, dots, after string
	prints              string
}

// blocksOfPages are all blocks of Go on the pages about replicated data, sharding, singletons, deliveries and states
// that are no whole programs. The variables ctx, node, dir and port are those of programOfPages.
var blocksOfPages = []block{
	{page: "docs/ddata.md", before: onCluster, after: `fmt.Println("visits", v.Value())`, prints: "visits 1"},
	{page: "docs/ddata.md", nth: 1, before: onCluster, after: `fmt.Println(found[0].Name, found[0].Address)`, prints: "mail 10.0.0.7:25"},
	{
		page: "docs/ddata.md", nth: 2,
		before: onCluster + "type price struct { Share string; Cents int }\n",
		after:  `m, err := sub.Next(ctx); fmt.Println(m.Value, err)`, prints: "{ACME 100} <nil>",
	},
	{
		page: "ddata/doc.go", before: onMembers,
		dots:   `if err != nil { panic(err) }; fmt.Println(event.Kind, who, event.Value.Has("ada")); return`,
		prints: `changed ["ada"] true`,
	},
	{page: "ddata/durable/doc.go", dots: openedStore, prints: "start 1"},
	{page: "ddata/durable/README.md", before: withRecords, dots: openedStore, after: appliedRecords, prints: "start 1\n1 record"},
	{page: "docs/singletons.md", before: onCluster + cleans, after: awaitCleaning, prints: "cleaned"},
	{page: "docs/singletons.md", nth: 1, before: onCluster + projects, after: `for range 8 { <-projected }; fmt.Println("projected")`, prints: "projected"},
	{page: "docs/singletons.md", nth: 2, before: onCluster + projectsOfMany, after: awaitSixteen, prints: "of 16"},
	{page: "docs/singletons.md", nth: 3, before: onCluster, after: `fmt.Println(sum.GetValue())`, prints: "3"},
	{page: "docs/singletons.md", nth: 4, before: onCluster + cleans, after: awaitCleaning, prints: "cleaned"},
	{page: "docs/singletons.md", nth: 5, before: onCluster + cleans + "store := leases.New()\n", after: awaitCleaning, prints: "cleaned"},
	{page: "docs/sharding.md", before: onCluster, after: `fmt.Println(sum.GetValue())`, prints: "5"},
	{page: "docs/reminders.md", before: onCluster, after: `fmt.Println(<-reminded)`, prints: "2026-17: demand payment"},
	{page: "docs/reminders.md", nth: 1, before: onCluster + reminds, after: `fmt.Println(day.Sub(f.Due))`, prints: "23h0m0s"},
	{page: "docs/state.md", before: onCluster, after: `fmt.Println(balance.GetValue())`, prints: "100"},
	{page: "docs/state.md", nth: 1, before: onCluster, after: `fmt.Println(bookings.GetValue())`, prints: "1"},
	{page: "docs/delivery.md", before: onCluster, after: `producer.Close()`, prints: "ada: welcome\nada: your account is ready"},
	{
		page: "docs/delivery.md", nth: 1, before: onCluster,
		after: `producer, err := delivery.NewProducer(ctx, purses, delivery.Default())
if err != nil { panic(err) }
defer producer.Close()
fmt.Println(producer.Deliver(ctx, "ada", wrapperspb.Int64(7)))`,
		prints: "<nil>",
	},
	{
		page: "docs/delivery.md", nth: 2, before: onCluster,
		after: `fmt.Println(pool.Flush(ctx), pool.Stats().Confirmed); pool.Close()`, prints: "<nil> 2",
	},
	{page: "docs/state.md", nth: 2, after: `fmt.Println(account.Cents)`, prints: "700"},
}

const (
	onCluster = `cfg := cluster.Default()
cfg.Cluster.Name, cfg.Node.Address = "pages", address()
cfg.Membership.SeedNodes = []string{cfg.Node.Address}
node, err := cluster.Start(ctx, cluster.WithConfig(cfg))
if err != nil { panic(err) }
defer node.Close()
if err := node.AwaitUp(ctx); err != nil { panic(err) }
`
	onMembers = `cfg := membership.Default()
cfg.Cluster.Name, cfg.Node.Address = "pages", address()
cfg.Membership.SeedNodes = []string{cfg.Node.Address}
node, err := membership.Start(ctx, cfg)
if err != nil { panic(err) }
defer node.Close()
`
	withRecords    = "records := []store.Record{{Key: \"k\", Value: []byte(\"v\")}}\n"
	openedStore    = `fmt.Println("start", s.Starts())`
	appliedRecords = `n := 0
err = s.Load(ctx, "all", func([]byte) error { return nil }, func(store.Record) error { n++; return nil })
if err != nil { panic(err) }
fmt.Println(n, "record")`
	cleans = `cleaned := make(chan string, 1)
cleanUp := func(context.Context, sharding.Epoch) error { cleaned <- "cleaned"; return nil }
`
	projects = `projected := make(chan int)
project := func(_ context.Context, number int, _ sharding.Epoch) error { projected <- number; return nil }
`
	projectsOfMany = `projected := make(chan int)
project := func(ctx context.Context, _, count int, _ sharding.Epoch) error {
	select {
	case projected <- count:
	case <-ctx.Done():
	}
	return nil
}
`
	awaitSixteen  = `for <-projected != 16 { }; fmt.Println("of 16")`
	awaitCleaning = `fmt.Println(<-cleaned)`
	// programOfPages is the program without the functions of the blocks.
	programOfPages = `package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/durable"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/ddata/services/registry"
	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/downing/lease"
	leases "github.com/quorate/quorate/downing/lease/memory"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/delivery"
	"github.com/quorate/quorate/sharding/state/shardlog"
	"github.com/quorate/quorate/sharding/reminder"
	"github.com/quorate/quorate/sharding/singleton"
	"github.com/quorate/quorate/sharding/singleton/daemon"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/memory"
)

type (
	Account struct{ Cents int64 }
	Ledger  struct{ Cents, Bookings int64 }
)

type counter struct{ sum int64 }

func (c *counter) Receive(ctx *sharding.Context, more *wrapperspb.Int64Value) error {
	c.sum += more.GetValue()
	return ctx.Reply(wrapperspb.Int64(c.sum))
}

type Mailer struct{}

func (Mailer) Receive(ctx *sharding.Context, letter *wrapperspb.StringValue) error {
	fmt.Println(ctx.ID() + ": " + letter.GetValue())
	return nil
}

type Resizer struct{}

func (Resizer) Receive(*sharding.Context, *wrapperspb.StringValue) error { return nil }

type Bill struct{}

var reminded = make(chan string, 1)

func (Bill) Receive(ctx *sharding.Context, what *wrapperspb.StringValue) error {
	reminded <- ctx.ID() + ": " + what.GetValue()
	return ctx.Reply(what)
}

func address() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil { panic(err) }
	defer l.Close()
	return l.Addr().String()
}

func main() {
	ctx := context.Background()
`
)

// TestTheCodeOfPagesRuns builds a program from the blocks, runs the program, and compares
// what each block prints.
func TestTheCodeOfPagesRuns(t *testing.T) {
	blocks, dir := map[string][]string{}, t.TempDir()
	program, want := programOfPages, ""
	for _, b := range blocksOfPages {
		if blocks[b.page] == nil {
			blocks[b.page] = goBlocks(t, b.page)
		}
		require.Greater(t, len(blocks[b.page]), b.nth, "%s has lost blocks", b.page)
		code := strings.ReplaceAll(blocks[b.page][b.nth], "/var/lib/bank/data", filepath.ToSlash(filepath.Join(dir, b.page)))
		program += "\tfunc() {\n" + b.before + "{\n" + checked(t, strings.ReplaceAll(code, "...\n", b.dots+"\n")) + b.after + "\n}\n}()\n"
		want += b.prints + "\n"
	}
	for page, n := range map[string]int{"docs/ddata.md": 3, "docs/delivery.md": 3, "docs/reminders.md": 2, "docs/sharding.md": 1, "docs/singletons.md": 6, "docs/state.md": 3} {
		require.Len(t, blocks[page], n, "a block of %s is not in the program", page)
	}
	require.Equal(t, want, runProgram(t, program+"}\n"))
}

// TestTheProgramOfTheReadmeOfValuesRuns runs the program in the README of ddata/crdt.
func TestTheProgramOfTheReadmeOfValuesRuns(t *testing.T) {
	require.Equal(t, "[apple pear]\n", runProgram(t, goBlocks(t, "ddata/crdt/README.md")[0]))
}

// indented finds code in the comment of a package: lines that a tab begins, until a text does.
var indented = regexp.MustCompile(`(?m)(?:^//\t.*\n(?:^//\n)*)+`)

// goBlocks returns the blocks of Go on a page, or the first indented block of the comment in a
// doc.go.
func goBlocks(t *testing.T, page string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	require.NoError(t, err)
	text := strings.ReplaceAll(string(raw), "\r\n", "\n")
	if strings.HasSuffix(page, ".go") {
		lines := strings.ReplaceAll(indented.FindString(text), "//\t", "")
		return []string{strings.ReplaceAll(lines, "//\n", "\n")}
	}
	blocks := strings.Split(text, "\n```go\n")[1:]
	for i := range blocks {
		var ends bool
		blocks[i], _, ends = strings.Cut(blocks[i], "```")
		require.True(t, ends, "a block of %s has no end", page)
	}
	return blocks
}

// checked returns statements with a check behind each that may have failed, and a use of each
// variable, so that the compiler does not miss what the page leaves out.
func checked(t *testing.T, code string) string {
	t.Helper()
	const head = "package p\nfunc f() {\n"
	source := head + code + "\n}\n"
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	require.NoError(t, err, "%s", code)
	var out strings.Builder
	for _, s := range file.Decls[0].(*ast.FuncDecl).Body.List {
		out.WriteString(source[s.Pos()-1:s.End()-1] + "\n")
		assigned, _ := s.(*ast.AssignStmt)
		if assigned == nil {
			continue
		}
		for _, x := range assigned.Lhs {
			switch name, _ := x.(*ast.Ident); {
			case name == nil || name.Name == "_":
			case name.Name == "err":
				out.WriteString("if err != nil { panic(err) }\n")
			default:
				out.WriteString("_ = " + name.Name + "\n")
			}
		}
	}
	return out.String()
}

// runProgram builds and runs a program, and returns what it prints.
func runProgram(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	path, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "pages")
	require.NoError(t, os.WriteFile(path, []byte(source), 0o600))
	ctx := patience.Context(t)
	out, err := exec.CommandContext(ctx, "go", "build", "-o", program, path).CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, source)
	var stderr strings.Builder
	run := exec.CommandContext(ctx, program)
	run.Stderr = &stderr
	out, err = run.Output()
	require.NoError(t, err, "%s", &stderr)
	return string(out)
}

// reminds declares a service of reminders and what came on the last day before the clocks of Berlin change.
const reminds = `
reminders, err := reminder.Start(node, memory.New(), reminder.Default())
if err != nil { panic(err) }
due := time.Date(2027, time.March, 27, 23, 30, 0, 0, time.UTC)
f := reminder.Fired{Reminder: reminder.Reminder{ID: "2026-17", Name: "demand payment", Due: due}}
`

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"flag"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/quorate/quorate/rpc/internal/generate"
)

// rewrite has the golden files written anew: go test -run Golden ./internal/generate -rewrite.
var rewrite = flag.Bool("rewrite", false, "write the golden files")

// cases reads the files of the tests.
func cases(t *testing.T) *descriptorpb.FileDescriptorSet {
	t.Helper()
	text, err := os.ReadFile("testdata/cases.txtpb")
	require.NoError(t, err)
	set := new(descriptorpb.FileDescriptorSet)
	require.NoError(t, prototext.Unmarshal(text, set))
	return set
}

// run runs the generator as protoc does.
func run(t *testing.T, set *descriptorpb.FileDescriptorSet, files ...string) *pluginpb.CodeGeneratorResponse {
	t.Helper()
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: files, ProtoFile: set.GetFile(), Parameter: new("paths=source_relative"),
	})
	require.NoError(t, err)
	if err := generate.Run(plugin); err != nil {
		plugin.Error(err)
	}
	return plugin.Response()
}

func TestGoldenCode(t *testing.T) {
	out := run(t, cases(t), "bank/bank.proto", "shared/money.proto")
	require.Empty(t, out.GetError())
	require.Len(t, out.GetFile(), 1, "a file without services has no code")
	got := out.GetFile()[0]
	require.Equal(t, "bank/bankv1quorate/bank.quorate.pb.go", got.GetName())
	_, err := parser.ParseFile(token.NewFileSet(), got.GetName(), got.GetContent(), parser.ParseComments)
	require.NoError(t, err)
	golden := filepath.Join("testdata", "golden", "bank.quorate.pb.go.txt")
	if *rewrite {
		require.NoError(t, os.WriteFile(golden, []byte(got.GetContent()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got.GetContent(), "run with -rewrite and read the difference")
}

// A service whose only use of Empty is that it is one-way does not import it: Go refuses what is imported
// and not used.
func TestImportsAreUsed(t *testing.T) {
	set := cases(t)
	accounts := set.GetFile()[2].GetService()[0]
	accounts.Method = accounts.GetMethod()[:2]
	out := run(t, set, "bank/bank.proto")
	require.Empty(t, out.GetError())
	file, err := parser.ParseFile(token.NewFileSet(), "bank.go", out.GetFile()[0].GetContent(), 0)
	require.NoError(t, err)
	for _, i := range file.Imports {
		require.Contains(t, out.GetFile()[0].GetContent(), i.Name.Name+".", i.Path.Value)
	}
}

// What cannot be a typed client is refused with the name of what is wrong, and no file is written.
func TestRefusals(t *testing.T) {
	yes := new(true)
	bank := func(set *descriptorpb.FileDescriptorSet) *descriptorpb.FileDescriptorProto { return set.GetFile()[2] }
	for _, c := range []struct {
		name   string
		change func(*descriptorpb.FileDescriptorProto)
		want   string
	}{
		{"a stream of requests", func(f *descriptorpb.FileDescriptorProto) { f.Service[0].Method[0].ClientStreaming = yes }, "rpc bank.v1.Accounts.Deposit streams"},
		{"a stream of responses", func(f *descriptorpb.FileDescriptorProto) { f.Service[0].Method[1].ServerStreaming = yes }, "rpc bank.v1.Accounts.Note streams"},
		{"two rpcs with one name in Go", func(f *descriptorpb.FileDescriptorProto) { f.Service[0].Method[0].Name = new("note") }, "two rpcs that are Note in Go"},
		{"a service with the name of an entity", func(f *descriptorpb.FileDescriptorProto) { f.Service[1].Name = new("AccountsEntity") }, "would both declare AccountsEntity"},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := cases(t)
			c.change(bank(set))
			out := run(t, set, "bank/bank.proto")
			require.Contains(t, out.GetError(), c.want)
			require.Empty(t, out.GetFile())
		})
	}
}

// Services of two files of one package share its names.
func TestNamesOfTwoFilesMeet(t *testing.T) {
	set := cases(t)
	other := proto.CloneOf(set.GetFile()[2])
	other.Name, other.Package, other.SourceCodeInfo = new("bank/other.proto"), new("bank.v2"), nil
	for _, s := range other.Service {
		for _, m := range s.Method {
			m.InputType, m.OutputType = new(".bank.v2.Note"), new(".bank.v2.Note")
		}
	}
	set.File = append(set.File, other)
	out := run(t, set, "bank/bank.proto", "bank/other.proto")
	require.Contains(t, out.GetError(), "service bank.v1.Accounts and service bank.v2.Accounts would both declare Accounts")
}

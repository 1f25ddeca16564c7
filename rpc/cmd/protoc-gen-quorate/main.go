// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command protoc-gen-quorate is a plugin of protoc and buf. It generates typed clients of entities,
// and the interfaces of the entities, from the services of .proto files; see package rpc.
//
//	go install github.com/quorate/quorate/rpc/cmd/protoc-gen-quorate@latest
//	protoc --go_out=. --go_opt=paths=source_relative \
//	  --quorate_out=. --quorate_opt=paths=source_relative bank.proto
package main

import (
	"flag"

	"google.golang.org/protobuf/compiler/protogen"

	"github.com/quorate/quorate/rpc/internal/generate"
)

func main() {
	// Flags would be options of the plugin; there are none but those of protogen, such as paths.
	var flags flag.FlagSet
	protogen.Options{ParamFunc: flags.Set}.Run(generate.Run)
}

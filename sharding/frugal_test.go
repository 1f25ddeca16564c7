// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"bytes"
	"reflect"
	"testing"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/quorate/quorate/internal/patience/frugal"
	"github.com/quorate/quorate/sharding"
)

// album is a message with lists of what is cheap to write as JSON and dear to keep.
type album struct {
	Numbers []int
	Texts   []string
	Any     []any
	Large   []page
	Far     []*page
}

type page struct{ Words [25]int }

// Messages take what their types do: the page about security says how much that is.
func TestCodecsTakeWhatTheirMessagesDo(t *testing.T) {
	many := func(field, unit string) []byte {
		return []byte(`{"` + field + `":[` + string(bytes.Repeat([]byte(unit+","), 60<<10/(len(unit)+1))) + unit + `]}`)
	}
	frugal.RequireFactor(t, 48+2*int(reflect.TypeFor[page]().Size()), func(b []byte) { _ = sharding.JSON{}.Decode(b, new(album)) }, map[string][]byte{
		"numbers": many("Numbers", "0"), "texts": many("Texts", `""`), "any numbers": many("Any", "0"), "any": many("Any", "{}"),
		"structs": many("Large", "{}"), "pointers": many("Far", "{}"),
	})
	frugal.RequireWithin(t, 48+int(reflect.TypeFor[descriptorpb.FileDescriptorProto]().Size())/2, func(b []byte) {
		_ = sharding.Protobuf{}.Decode(b, new(descriptorpb.FileDescriptorSet))
	})
}

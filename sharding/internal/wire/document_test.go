// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/quorate/quorate/machine/wire/wiretest"
)

// document is what the .proto files of this module say.
var document = wiretest.NewDocument("quorate.sharding.v1", "../proto/descriptor.binpb")

// Each field of a control message in the document is written by a table, and none that is not there; that tables write
// nothing else say the tests that read again what the document knows.
func TestTheDocumentDescribesTheBytes(t *testing.T) {
	described := map[string]*dynamicpb.Message{}
	for name, m := range controls() {
		b, err := codec.Append(nil, m)
		require.NoError(t, err)
		described[name] = document.Parse(t, "Control", b)
	}
	wiretest.RequireWritten(t, described)
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A field whose comment leaves out what an author has to know is named.
func TestFieldsOfTheContractSayWhatTheyMean(t *testing.T) {
	all := parseProto(`
// Asked is a question.
message Asked {
  repeated string silent = 1;
  // How long it took.
  int64 took_nanos = 2;
  // How long it took, in nanoseconds, from 0.
  int64 takes_nanos = 3;
  // How many there are.
  repeated uint32 count = 4;
  // Where each is: places in silent.
  repeated uint32 where = 5;
}
`)
	require.Len(t, all, 1)
	require.Len(t, all[0].fields, 5)
	require.EqualError(t, errors.Join(all[0].lacking()...), `Asked.silent: the comment is missing
Asked.took_nanos: the comment does not say what 0 means
Asked.took_nanos: the comment does not name the unit
Asked.count: the comment does not say what 0 means`)
}

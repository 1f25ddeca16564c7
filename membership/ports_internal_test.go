// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fd"
)

// untidy is a judge that sorts the nodes of its batch in another order.
type untidy struct{}

func (untidy) Judge(_ context.Context, b fd.Batch) (fd.Verdicts, error) {
	slices.Reverse(b.Subjects)
	return fd.Verdicts{Number: b.Number, Changes: []fd.Verdict{{ID: "a", Reason: "r"}}}, nil
}

// A batch belongs to the judge. What it does with it changes nothing in the batch by which the
// machine finds whom the verdicts are about.
func TestAJudgeMayChangeItsBatch(t *testing.T) {
	b := fd.Batch{Number: 1, Subjects: []fd.Subject{{ID: "a", Available: true}, {ID: "b"}}}
	want := slices.Clone(b.Subjects)
	_, err := judgedBy(t.Context(), untidy{}, b)
	require.NoError(t, err)
	require.Equal(t, want, b.Subjects)
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package failuredetectorpolicy_test

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/policies/failuredetectorpolicy"
	"github.com/quorate/quorate/plugins/internal/wire"
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// What a plugin answers costs no more than it has bytes, times a small number.
func TestAnswersAreDecodedFrugally(t *testing.T) {
	batch := fd.Batch{Number: 1, Subjects: []fd.Subject{{ID: "a", Available: true}, {ID: "b", Available: true}}}
	wiretest.Frugal(t, func(ctx context.Context, plugin client.Target) error {
		_, err := failuredetectorpolicy.New(plugin).Judge(ctx, batch)
		return err
	}, wiretest.Bytes(t, &pluginv1.JudgeResponse{Number: 1, Node: []uint32{0, 1}, Reason: []uint32{0, 0}, Reasons: []string{"late"}}))
}

// A reason that many verdicts share is made a line once: each line is a copy.
func TestVerdictsShareTheirReasons(t *testing.T) {
	const many = 5000
	batch, p := fd.Batch{Number: 1}, &pluginv1.JudgeResponse{Number: 1, Reasons: []string{strings.Repeat("\n", wire.MaxTextBytes)}}
	for i := range uint32(many) {
		batch.Subjects = append(batch.Subjects, fd.Subject{ID: strconv.Itoa(int(i)), Available: true})
		p.Node, p.Reason = append(p.Node, i), append(p.Reason, 0)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	v, err := failuredetectorpolicy.VerdictsFromProto(&batch, p)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Len(t, v.Changes, many)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(many*wire.MaxTextBytes/2))
}

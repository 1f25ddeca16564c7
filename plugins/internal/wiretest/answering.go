// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wiretest

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/patience/frugal"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/contract"
)

// Answering is a connection on which each call is answered by its bytes.
type Answering []byte

var _ grpc.ClientConnInterface = Answering(nil)

// Invoke decodes the bytes as a connection would.
func (a Answering) Invoke(_ context.Context, _ string, _, answer any, opts ...grpc.CallOption) error {
	for _, o := range opts {
		if forced, ok := o.(grpc.ForceCodecV2CallOption); ok {
			return forced.CodecV2.Unmarshal(mem.BufferSlice{mem.SliceBuffer(a)}, answer)
		}
	}
	return errors.New("a call without a codec")
}

// NewStream is not needed.
func (Answering) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("no streams")
}

// timeout is longer than any call takes here.
const timeout = time.Hour

// FrugalTrial is Frugal of the question by which a policy is tried.
func FrugalTrial(t *testing.T, policy contract.Policy, answer proto.Message) {
	t.Helper()
	Frugal(t, func(ctx context.Context, plugin client.Target) error {
		_, err := policy.Try(ctx, policy.Client(plugin))
		return err
	}, Bytes(t, answer))
}

// Frugal fails the test if a call allocates more than eight bytes for each byte of an answer. The answers are made of
// fields that repeat, alone and behind each of the seeds, which are answers too.
func Frugal(t *testing.T, call func(ctx context.Context, plugin client.Target) error, seeds ...[]byte) {
	t.Helper()
	for _, seed := range seeds {
		if err := call(t.Context(), client.Target{Conn: Answering(seed), Timeout: timeout}); err != nil {
			t.Errorf("a seed is no answer: %v", err)
		}
	}
	frugal.Require(t, func(b []byte) { _ = call(t.Context(), client.Target{Conn: Answering(b), Timeout: timeout}) }, seeds...)
}

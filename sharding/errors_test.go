// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding"
)

// One question tells of every error of a message whether nobody has handled it.
func TestOneErrorSaysThatAMessageWasNotHandled(t *testing.T) {
	of := func(errs ...error) error {
		return &sharding.MessageError{Kind: "k", Entity: "e", Err: errors.Join(errs...)}
	}
	for _, err := range []error{
		of(sharding.ErrNotDelivered), of(sharding.ErrExpired), of(sharding.ErrNoStanding), of(sharding.ErrOverloaded), of(sharding.ErrUnreachable),
		of(&sharding.UnreachableError{}), of(sharding.ErrNotDelivered, context.Canceled),
	} {
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
	}
	for _, err := range []error{
		of(sharding.ErrUnknownOutcome), of(sharding.ErrEntityFailed), of(sharding.ErrInvalid), of(context.Canceled),
		of(sharding.ErrUnknownOutcome, sharding.ErrNoStanding), of(sharding.ErrUnknownOutcome, &sharding.UnreachableError{}), of(sharding.ErrEntityFailed, sharding.ErrExpired),
	} {
		require.NotErrorIs(t, err, sharding.ErrNotDelivered)
	}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"testing"

	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/wiretest"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// What a plugin says of itself costs no more than it has bytes, times a small number.
func TestAnswersAreDecodedFrugally(t *testing.T) {
	manifest := &pluginv1.ConfigureResponse{Name: "witness", Version: "1", Policy: pluginv1.Policy_POLICY_DOWNING, Class: &pluginv1.Class{Pure: true}}
	wiretest.Frugal(t, func(ctx context.Context, plugin client.Target) error {
		_, err := client.Configure(ctx, plugin.Conn, "witness", "1", nil)
		return err
	}, wiretest.Bytes(t, manifest))
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package attached

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/quorate/quorate/management"
)

// operateTimeout bounds one request of an operator.
const operateTimeout = 15 * time.Second

// Operate asks a node as an operator does, over the Unix socket of the setting management.operators.socket, and
// decodes the answer. Without an operation it only asks.
func Operate(ctx context.Context, socket, path, operation string, into any) error {
	method, header := http.MethodGet, http.Header{}
	if operation != "" {
		method = http.MethodPost
		header.Set(management.OperatorHeader, operation)
	}
	ctx, cancel := context.WithTimeout(ctx, operateTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header = header
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // It was read.
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10)) // The status says enough without it.
		return fmt.Errorf("%s at %s: %s: %s", path, socket, response.Status, text)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

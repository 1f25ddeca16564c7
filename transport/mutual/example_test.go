// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package mutual_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"

	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/mutual"
)

// A server whose certificates are replaced while it runs.
func ExampleOpen() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	files, err := mutual.Open(transport.TLSFiles{
		Certificate: "node.pem", Key: "node.key", Authorities: "ca.pem",
	}, func(c mutual.Change) { slog.Info("certificates", "files", c.Files, "error", c.Err) })
	if err != nil {
		fmt.Println(err)
		return
	}
	go files.Watch(ctx) // Ends with ctx.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	listener = tls.NewListener(listener, files.TLS().Server("http/1.1"))
	defer func() { _ = listener.Close() }()
	// Output: tls.certificate node.pem with tls.key node.key: stat node.pem: no such file or directory
	// tls.authorities ca.pem: stat ca.pem: no such file or directory
}

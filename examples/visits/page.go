// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// askTimeout bounds one request: longer than a failover, so that a visit that met a dying node is
// usually counted after all.
const askTimeout = 12 * time.Second

// page counts the visits of one page.
type page struct{ visits int64 }

// Receive adds visits, possibly none, and replies with the number.
func (p *page) Receive(ctx *sharding.Context, more *wrapperspb.Int64Value) error {
	p.visits += more.GetValue()
	return ctx.Reply(wrapperspb.Int64(p.visits))
}

// Snapshot takes the number along when the shard of the page moves in order.
func (p *page) Snapshot(*sharding.Context) ([]byte, error) { //nolint:unparam // The result is that of sharding.Snapshotter.
	return binary.AppendVarint(nil, p.visits), nil
}

// Restore takes over the number on the new home.
func (p *page) Restore(_ *sharding.Context, snapshot []byte) error {
	visits, n := binary.Varint(snapshot)
	if n != len(snapshot) || n <= 0 {
		return fmt.Errorf("visits: %d bytes are no number", len(snapshot))
	}
	p.visits = visits
	return nil
}

// open starts the kind of the pages on a node.
func open(node *cluster.Node) (*sharding.Region[*wrapperspb.Int64Value], error) {
	return sharding.Start(node, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "page", New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return new(page) },
	})
}

// routes serves visits.
func routes(pages *sharding.Region[*wrapperspb.Int64Value]) http.Handler {
	count := func(more int64) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
			defer cancel()
			visits, err := sharding.Ask[*wrapperspb.Int64Value](ctx, pages, r.PathValue("page"), wrapperspb.Int64(more))
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			_, _ = fmt.Fprintln(w, visits.GetValue()) // A client that is gone asks again.
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /visits/{page}", count(1))
	mux.HandleFunc("GET /visits/{page}", count(0))
	return mux
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/reminder"
	"github.com/quorate/quorate/sharding/singleton/daemon"
)

const (
	// requestTimeout bounds one request.
	requestTimeout = 12 * time.Second
	// remindedIn is when a reminder comes.
	remindedIn = 2 * time.Second
)

// living are the boxes that run.
type living struct {
	Boxes   map[string]string `json:"boxes"`   // The node of each box.
	Missing []string          `json:"missing"` // The nodes that did not say which run there.
}

// routes returns what the program serves over HTTP.
func (f *postService) routes() http.Handler {
	mux := http.NewServeMux()
	answer := func(pattern string, do func(ctx context.Context, r *http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
			defer cancel()
			value, err := do(ctx, r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			_ = json.NewEncoder(w).Encode(value) // The client may be gone.
		})
	}
	answer("POST /boxes/{id}/letters/{letter}", func(ctx context.Context, r *http.Request) (any, error) {
		return true, f.producer.Send(ctx, r.PathValue("id"), wrapperspb.String(string(aLetter)+r.PathValue("letter")))
	})
	answer("POST /boxes/{id}/reminders/{name}", func(ctx context.Context, r *http.Request) (any, error) {
		return true, f.reminders.Set(ctx, reminder.Reminder{Kind: kind, ID: r.PathValue("id"), Name: r.PathValue("name"), Due: time.Now().Add(remindedIn)})
	})
	answer("GET /boxes/{id}", func(ctx context.Context, r *http.Request) (any, error) { return f.ask(ctx, r.PathValue("id")) })
	answer("GET /boxes", func(ctx context.Context, _ *http.Request) (any, error) { return f.living(ctx) })
	answer("POST /counters/{n}", func(ctx context.Context, r *http.Request) (any, error) {
		n, err := strconv.Atoi(r.PathValue("n"))
		if err != nil {
			return nil, err
		}
		return daemon.Rescale(ctx, f.node, "counters", n)
	})
	return mux
}

// living asks all nodes which boxes run there.
func (f *postService) living(ctx context.Context) (living, error) {
	all := living{Boxes: map[string]string{}}
	for after := ""; ; {
		page, err := sharding.EntitiesEverywhere(ctx, f.node, kind, after, 1000)
		if err != nil {
			return all, err
		}
		for _, e := range page.Entities {
			all.Boxes[e.ID] = e.Node
		}
		for _, m := range page.Missing {
			all.Missing = append(all.Missing, m.Node+": "+m.Reason)
		}
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/examples/bank"
)

// askTimeout bounds one request: longer than a node's failover, so that a
// request that met a dying node is usually answered after all.
const askTimeout = 12 * time.Second

// member is one member as the demo's display shows it.
type member struct {
	Node        string `json:"node"`
	Status      string `json:"status"`
	UpNumber    uint64 `json:"up_number"`
	Unreachable bool   `json:"unreachable,omitempty"`
}

// members is the answer of GET /members.
type members struct {
	Self      string   `json:"self"`
	Leader    string   `json:"leader"`
	Converged bool     `json:"converged"`
	Members   []member `json:"members"`
}

// patience is how long a request may take: askTimeout, or less if the request has a
// parameter "within", such as 2s.
func patience(r *http.Request) time.Duration {
	if d, err := time.ParseDuration(r.URL.Query().Get("within")); err == nil {
		return min(d, askTimeout)
	}
	return askTimeout
}

// routes serves transfers, balances and the members.
func routes(node *cluster.Node, accounts *bank.Accounts) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /transfers", func(w http.ResponseWriter, r *http.Request) {
		var t bank.Transfer
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&t); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience(r))
		defer cancel()
		receipt, err := accounts.Transfer(ctx, t)
		answer(w, receipt, err)
	})
	mux.HandleFunc("GET /accounts/{id}", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience(r))
		defer cancel()
		outcome, err := accounts.Read(ctx, r.PathValue("id"))
		answer(w, map[string]any{"cents": outcome.GetCents(), "epoch": outcome.GetEpoch()}, err)
	})
	mux.HandleFunc("GET /members", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, list(node), nil)
	})
	mux.HandleFunc("GET /plugins", func(w http.ResponseWriter, _ *http.Request) { answer(w, node.Plugins(), nil) })
	return mux
}

// answer writes v, or the error with a status that makes clients try again.
func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // The client is gone; it will ask again.
}

// list describes the cluster as this node sees it.
func list(node *cluster.Node) members {
	view := node.Membership().View()
	out := members{Self: view.Self.String(), Leader: view.Leader.String(), Converged: view.Converged}
	for _, m := range view.State.Members() {
		out.Members = append(out.Members, member{
			Node: m.Node.String(), Status: m.Status.String(), UpNumber: uint64(m.UpNumber),
			Unreachable: !view.State.Reachable(m.Node),
		})
	}
	return out
}

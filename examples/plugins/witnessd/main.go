// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command witnessd is the witness of the plugin beside it: it gives each cluster's
// casting vote to one side of a split.
//
// The vote goes to the first side that asks, and stays with the nodes of that side, its
// holders, for a time. Meanwhile another side gets the vote only if a holder is in it, or
// if no holder is among the voters any more and no node in it was refused: so the loser
// of a split stays the loser, however late it asks. The time must exceed the longest
// pause of a machine, for a side that was asleep believes that the split is new; and a
// holder that dies costs its cluster the vote for as long.
//
// A vote is on disk before it is given, so that after a restart it cannot go to another
// side. Run one process on a file.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// request asks for the vote; answer gives or refuses it.
type request struct {
	Cluster string   `json:"cluster"`
	Side    []string `json:"side"`
	Voters  []string `json:"voters"`
}

type answer struct {
	Granted bool   `json:"granted"`
	Reason  string `json:"reason"`
}

// vote says which nodes hold the vote of a cluster, until when, and for how long each
// refused node is remembered.
type vote struct {
	Holders []string             `json:"holders"`
	Until   time.Time            `json:"until"`
	Losers  map[string]time.Time `json:"losers"`
}

// refuses reports whether other nodes hold the vote.
func (v *vote) refuses(q request, now time.Time) bool {
	in := func(list []string) func(string) bool {
		return func(id string) bool { return slices.Contains(list, id) }
	}
	if !now.Before(v.Until) || slices.ContainsFunc(v.Holders, in(q.Side)) {
		return false
	}
	lost := slices.ContainsFunc(q.Side, func(id string) bool { return now.Before(v.Losers[id]) })
	return lost || slices.ContainsFunc(v.Holders, in(q.Voters))
}

// given returns the vote as the side holds it from now on.
func (v *vote) given(q request, now time.Time, hold time.Duration) vote {
	next := vote{Holders: q.Side, Until: now.Add(hold), Losers: map[string]time.Time{}}
	for id, until := range v.Losers {
		if now.Before(until) {
			next.Losers[id] = until
		}
	}
	for _, id := range q.Voters {
		next.Losers[id] = next.Until
	}
	for _, id := range q.Side {
		delete(next.Losers, id)
	}
	return next
}

// register holds the votes of all clusters, and their file.
type register struct {
	path string
	hold time.Duration
	mu   sync.Mutex // Guards votes and the file.
	last map[string]vote
}

// open reads the votes that were given earlier.
func open(path string, hold time.Duration) (*register, error) {
	r := &register{path: path, hold: hold, last: map[string]vote{}}
	text, err := os.ReadFile(path)
	switch {
	case os.IsNotExist(err):
		return r, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(text, &r.last); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// ask gives or refuses the vote.
func (r *register) ask(q request, now time.Time) (answer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.last[q.Cluster]
	if held.refuses(q, now) {
		return answer{Reason: fmt.Sprintf("%d other nodes hold the vote until %s", len(held.Holders), held.Until.Format(time.RFC3339))}, nil
	}
	next := held.given(q, now, r.hold)
	r.last[q.Cluster] = next
	if err := r.store(); err != nil {
		r.last[q.Cluster] = held
		return answer{}, err
	}
	return answer{Granted: true, Reason: "yours until " + next.Until.Format(time.RFC3339)}, nil
}

// store replaces the file in one step, and returns once it is on disk.
func (r *register) store() error {
	text, err := json.Marshal(r.last)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(r.path), filepath.Base(r.path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // The file is gone already if all went well.
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Rename(file.Name(), r.path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(r.path))
}

// syncDir makes a rename survive a crash. Windows has no such call and needs none.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && !os.IsPermission(err) {
		return err
	}
	return nil
}

const maxRequestBytes = 1 << 20

// ServeHTTP answers one request.
func (r *register) ServeHTTP(w http.ResponseWriter, h *http.Request) {
	var q request
	decode := json.NewDecoder(http.MaxBytesReader(w, h.Body, maxRequestBytes))
	decode.DisallowUnknownFields()
	if err := decode.Decode(&q); err != nil || h.Method != http.MethodPost || q.Cluster == "" || len(q.Side) == 0 {
		http.Error(w, "post {cluster, side, voters}, with at least one node in side", http.StatusBadRequest)
		return
	}
	a, err := r.ask(q, time.Now())
	if err != nil {
		slog.ErrorContext(h.Context(), "the vote cannot be stored", "cluster", q.Cluster, "error", err)
		http.Error(w, "the vote cannot be stored", http.StatusInternalServerError)
		return
	}
	slog.InfoContext(h.Context(), "asked", "cluster", q.Cluster, "side", q.Side, "granted", a.Granted, "reason", a.Reason)
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(a); err != nil {
		slog.WarnContext(h.Context(), "the answer was not sent; who asks again gets the same", "cluster", q.Cluster, "error", err)
	}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:7999", "address to listen on")
	path := flag.String("state", "votes.json", "file that keeps the votes")
	hold := flag.Duration("hold", 24*time.Hour, "how long a side keeps the vote")
	flag.Parse()
	r, err := open(*path, *hold)
	if err != nil {
		slog.Error("the votes cannot be read", "error", err)
		os.Exit(1)
	}
	s := &http.Server{Handler: r, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		slog.Error("no address to listen on", "error", err)
		os.Exit(1)
	}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	slog.Info("listening", "address", l.Addr(), "state", *path, "hold", *hold)
	if err := s.Serve(l); ctx.Err() == nil {
		slog.Error("stopped", "error", err)
		os.Exit(1)
	}
}

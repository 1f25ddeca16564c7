// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The demo asks nodes for their view over HTTP ([nodeProcesses.members]), prints what has changed
// ([nodeProcesses.show]), and waits for a condition by polling all nodes ([nodeProcesses.until]).

// member is one member as a node sees it.
type member struct {
	Node        string `json:"node"`
	Status      string `json:"status"`
	UpNumber    uint64 `json:"up_number"`
	Unreachable bool   `json:"unreachable"`
}

// view is the cluster as a node sees it.
type view struct {
	Self    string   `json:"self"`
	Members []member `json:"members"`
}

// find returns the member that a process is, or nil.
func (v view) find(p *process) *member {
	for i := range v.Members {
		if v.Members[i].Node == p.Node {
			return &v.Members[i]
		}
	}
	return nil
}

// up counts the members that are up and reachable.
func (v view) up() int {
	n := 0
	for _, m := range v.Members {
		if m.Status == "up" && !m.Unreachable {
			n++
		}
	}
	return n
}

// members asks the nodes one after the other until one answers.
func (f *nodeProcesses) members(ctx context.Context) (view, error) {
	err := errors.New("no node is alive")
	for _, p := range f.nodes() {
		var v view
		if v, err = f.membersOf(ctx, p); err == nil {
			return v, nil
		}
	}
	return view{}, err
}

// membersOf asks one node.
func (f *nodeProcesses) membersOf(ctx context.Context, p *process) (view, error) {
	var v view
	err := f.get(ctx, p, "/members", &v)
	return v, err
}

// get sends a request that a node can answer at once.
func (f *nodeProcesses) get(ctx context.Context, p *process, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.HTTP+path, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// show prints what changed among the members, with the names of the processes.
func (f *nodeProcesses) show(v view) {
	f.mu.Lock()
	names := map[string]string{}
	for _, p := range f.all {
		names[p.address] = p.name
	}
	f.mu.Unlock()
	named := func(node string) string {
		address, _, _ := strings.Cut(node, "#")
		return cmp.Or(names[address], address)
	}
	v.Self = named(v.Self)
	for i := range v.Members {
		v.Members[i].Node = named(v.Members[i].Node)
	}
	f.printer.members(v)
}

// pollEvery is how often the demo looks at the members while it waits.
const pollEvery = 100 * time.Millisecond

// waitUp waits until each node sees n members, all of them up.
func (f *nodeProcesses) waitUp(ctx context.Context, n int) error {
	at := time.Now()
	err := f.until(ctx, func(v view) bool { return len(v.Members) == n && v.up() == n })
	if err != nil {
		return fmt.Errorf("waiting for %d members to be up: %w", n, err)
	}
	f.printer.event("%d members are up everywhere, %v later", n, time.Since(at).Round(10*time.Millisecond))
	return nil
}

// waitRemoved waits until no node lists the victim.
func (f *nodeProcesses) waitRemoved(ctx context.Context, victim *process) error {
	at := time.Now()
	if err := f.until(ctx, func(v view) bool { return v.find(victim) == nil }); err != nil {
		return fmt.Errorf("waiting for %s to be removed: %w", victim.name, err)
	}
	f.printer.event("%s is removed everywhere, %v later", victim.name, time.Since(at).Round(10*time.Millisecond))
	return nil
}

// waitAnswer waits until a node answers for an account, wherever the account lives.
func (f *nodeProcesses) waitAnswer(ctx context.Context, p *process) error {
	at := time.Now()
	for {
		var balance struct{ Cents int64 }
		if f.get(ctx, p, "/accounts/"+account(0), &balance) == nil {
			f.printer.event("%s answers, %v later", p.name, time.Since(at).Round(10*time.Millisecond))
			return nil
		}
		if err := sleep(ctx, pollEvery); err != nil {
			return fmt.Errorf("waiting for %s to answer: %w", p.name, err)
		}
	}
}

// until polls all nodes until every one of them satisfies ok.
func (f *nodeProcesses) until(ctx context.Context, ok func(view) bool) error {
	for {
		done := true
		for i, p := range f.nodes() {
			v, err := f.membersOf(ctx, p)
			if i == 0 && err == nil {
				f.show(v) // Only one node's view: those of several differ for moments.
			}
			done = done && err == nil && ok(v)
		}
		if done {
			return nil
		}
		if err := sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}

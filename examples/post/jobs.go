// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/singleton"
	"github.com/quorate/quorate/sharding/singleton/daemon"
)

const (
	// atFirst is how many counters are open at first, and maxCounters how many can be.
	atFirst, maxCounters = 8, 16
	// workInterval is how often postmaster and counters write what they do.
	workInterval = 20 * time.Millisecond
)

// entry is a line of the ledger: that somebody is at work.
type entry struct {
	Who      string `json:"who"` // "postmaster" or "counter".
	Number   int    `json:"number"`
	Count    int    `json:"count,omitempty"`    // How many counters there are.
	Revision uint64 `json:"revision,omitempty"` // Of that number.
	Epoch    []byte `json:"epoch"`              // In bytes that compare as epochs do.
	Node     string `json:"node"`
}

// ledgerOf returns the path of the ledger.
func ledgerOf(journal string) string { return filepath.Join(journal, "ledger") }

// write writes an entry at an interval until ctx ends. A line is appended by one write, so the order of the lines is
// that in which they were written, over all nodes.
func (e entry) write(ctx context.Context, journal string, epoch sharding.Epoch) (err error) {
	if e.Epoch, err = epoch.MarshalBinary(); err != nil {
		return err
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	ledger, err := os.OpenFile(ledgerOf(journal), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = ledger.Close() }() // Each write has said whether it failed.
	return singleton.Every(workInterval, func(ctx context.Context, _ sharding.Epoch) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, err := ledger.Write(append(line, '\n'))
		return err
	})(ctx, epoch)
}

// startPostmaster has one node at a time be the postmaster.
func startPostmaster(node *cluster.Node, journal string) error {
	return singleton.Start(node, singleton.Config{Name: "postmaster", Run: func(ctx context.Context, epoch sharding.Epoch) error {
		return entry{Who: "postmaster", Node: node.Self().String()}.write(ctx, journal, epoch)
	}})
}

// startCounters opens the counters that live on the node.
func startCounters(node *cluster.Node, journal string) error {
	return daemon.Start(node, daemon.Config{
		Name: "counters", Instances: atFirst, Max: maxCounters,
		Work: func(ctx context.Context, i daemon.Instance) error {
			e := entry{Who: "counter", Number: i.Number, Count: i.Count, Revision: i.Revision, Node: node.Self().String()}
			return e.write(ctx, journal, i.Epoch)
		},
	})
}

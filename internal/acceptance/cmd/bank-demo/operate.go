// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/examples/attached"
)

// What operators do under load, over the Unix socket of a node ([nodeProcesses.operate]), as quorate drain and
// quorate reshard do it: a node is drained ([demo.drain]), and the accounts get another number of shards
// ([demo.reshard]), also while a node is killed ([demo.reshardAndKill]).

// The numbers of shards that the accounts have by turns, after the default that they begin with. A change takes
// as long as there are former shards: a few seconds from one of these to the other.
const (
	fewerShards = 250
	moreShards  = 400
)

// accountsPath is the path of the kind of the accounts.
const accountsPath = "/v1/kinds/account"

// socketOf returns the path of the socket of a node for operators.
func (f *nodeProcesses) socketOf(p *process) string { return f.sockets + "/" + p.name }

// operate asks a node as an operator, who changes something if the operation is not empty.
func (f *nodeProcesses) operate(ctx context.Context, p *process, path, operation string, into any) error {
	return attached.Operate(ctx, f.socketOf(p), path, operation, into)
}

// drain has a node host nothing, and then host again.
func (d *demo) drain(ctx context.Context) error {
	victim, err := d.processes.pick(ctx, d.load.rnd.IntN(2) == 0, d.load.rnd)
	if err != nil {
		return err
	}
	d.printer.event("%s is drained", victim.name)
	at := time.Now()
	for left := 1; left > 0; {
		var state cluster.Draining
		if err := d.processes.operate(ctx, victim, "/v1/drain/begin?wait=5", cluster.DrainOperation, &state); err != nil {
			return err
		}
		left = len(state.Hosts)
	}
	d.printer.event("%s hosts nothing, %v later", victim.name, time.Since(at).Round(10*time.Millisecond))
	return d.processes.operate(ctx, victim, "/v1/drain/end", cluster.UndrainOperation, new(cluster.Draining))
}

// reshard has the accounts have another number of shards.
func (d *demo) reshard(ctx context.Context) error {
	to, err := d.beginReshard(ctx)
	if err != nil {
		return err
	}
	return d.waitResharded(ctx, to)
}

// reshardAndKill kills a node while the number of shards changes, and starts it again, with the number that its file
// has had all along.
func (d *demo) reshardAndKill(ctx context.Context) error {
	to, err := d.beginReshard(ctx)
	if err != nil {
		return err
	}
	if err := d.waitHalfway(ctx); err != nil {
		return err
	}
	victim, err := d.processes.pick(ctx, d.load.rnd.IntN(2) == 0, d.load.rnd)
	if err != nil {
		return err
	}
	if err := d.killThis(ctx, victim, "in the middle of the change"); err != nil {
		return err
	}
	fresh, err := d.processes.restart(ctx, victim)
	if err != nil {
		return err
	}
	return errors.Join(d.processes.admit(ctx, fresh), d.waitResharded(ctx, to))
}

// beginReshard begins a change of the number of shards, and returns the next number.
func (d *demo) beginReshard(ctx context.Context) (to int, err error) {
	asked, err := d.processes.pick(ctx, false, d.load.rnd)
	if err != nil {
		return 0, err
	}
	var now cluster.KindReshard
	if err := d.processes.operate(ctx, asked, accountsPath+"/resharding", "", &now); err != nil {
		return 0, err
	}
	to = fewerShards
	if now.Shards == fewerShards {
		to = moreShards
	}
	d.printer.event("the accounts get %d shards in place of %d", to, now.Shards)
	query := url.Values{"shards": {strconv.Itoa(to)}}.Encode()
	return to, d.processes.operate(ctx, asked, accountsPath+"/reshard?"+query, cluster.ReshardOperation, &now)
}

// reshardTimeout bounds the wait for the end of a change.
const reshardTimeout = time.Minute

// waitHalfway waits until a third of the former shards are retired, as some node knows.
func (d *demo) waitHalfway(ctx context.Context) error {
	return d.waitShards(ctx, func(all []cluster.KindReshard) bool {
		for _, k := range all {
			if k.Resharding != nil && 3*k.Resharding.Retired >= k.Resharding.From {
				return true
			}
		}
		return false
	})
}

// waitResharded waits until all nodes know that a change is over.
func (d *demo) waitResharded(ctx context.Context, to int) error {
	at := time.Now()
	err := d.waitShards(ctx, func(all []cluster.KindReshard) bool {
		for _, k := range all {
			if k.Resharding != nil || k.Shards != to {
				return false
			}
		}
		return len(all) == d.processes.size()
	})
	if err == nil {
		d.printer.event("the accounts have %d shards everywhere, %v later", to, time.Since(at).Round(10*time.Millisecond))
	}
	return err
}

// waitShards polls the nodes until what those that answer know satisfies ok.
func (d *demo) waitShards(ctx context.Context, ok func(all []cluster.KindReshard) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, reshardTimeout, fmt.Errorf("the number of shards has not changed after %v", reshardTimeout))
	defer cancel()
	for {
		var all []cluster.KindReshard
		for _, p := range d.processes.nodes() {
			var k cluster.KindReshard
			if d.processes.operate(ctx, p, accountsPath+"/resharding", "", &k) == nil {
				all = append(all, k)
			}
		}
		if ok(all) {
			return nil
		}
		if err := sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}

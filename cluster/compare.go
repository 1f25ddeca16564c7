// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/membership"
)

// compare reports what cannot be of configurations of nodes of one cluster, given with the files in
// which they are, and tells of what hardly is meant. Tell may be nil.
func compare(all []*startCheck, paths []string, tell func(key, reason string)) config.Errors {
	var faults config.Errors
	fault := func(i int, key, format string, values ...any) {
		faults = append(faults, &config.Error{File: paths[i], Key: key, Reason: fmt.Sprintf(format, values...), Err: config.ErrInvalid})
	}
	at := map[string]string{}
	var with, without []string
	lists := map[string]bool{}
	for i, s := range all {
		if s.Cluster.Name != all[0].Cluster.Name {
			fault(i, "cluster.name", "%q is %q in %s: all nodes of a cluster have its name", s.Cluster.Name, all[0].Cluster.Name, paths[0])
		}
		if before, taken := at[s.Node.Address]; taken {
			fault(i, "node.address", "%s is that of %s too: each node has its own", s.Node.Address, before)
		}
		at[s.Node.Address] = paths[i]
		if s.Node.DataDir == "" {
			without = append(without, paths[i])
		} else {
			with = append(with, paths[i])
		}
		lists[strings.Join(slices.Sorted(slices.Values(s.Membership.SeedNodes)), ", ")] = true
	}
	if tell == nil || len(faults) > 0 {
		return faults
	}
	if len(with) > 0 && len(without) > 0 {
		tell("node.data-dir", fmt.Sprintf("is not in %s, but in %s: after a restart of all nodes only those with one count, and if they are no majority none starts by itself",
			strings.Join(without, ", "), strings.Join(with, ", ")))
	}
	if len(lists) > 1 {
		tell("membership.seed-nodes", fmt.Sprintf("differs, %d lists in %d files: give all nodes the same one, so that no two of them found a cluster each", len(lists), len(all)))
	}
	return nil
}

// resolveTimeout bounds how long a check looks up the names of seed nodes.
const resolveTimeout = 2 * time.Second

// ownEntries says which seed nodes are the node itself under another name, as far as this machine can resolve them.
func (s *startCheck) ownEntries() []error {
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	resolve := func(host string) []string {
		addresses, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			return nil // Another machine may know it.
		}
		return addresses
	}
	return membership.Config{Node: s.Node, Membership: s.Membership}.OwnEntries(func(entry, own string) bool {
		named := resolve(own)
		return slices.ContainsFunc(resolve(entry), func(a string) bool { return slices.Contains(named, a) })
	})
}

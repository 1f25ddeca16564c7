// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/sharding"
)

// Why shards wait: which shards of a list do, and what their coordinator says of each.

// maxReasons bounds the shards of a kind whose reasons a command asks for.
const maxReasons = 10

// waiting reports whether something waits for a shard: it has no home, stops, does not return from a call, or
// has messages that are not taken.
func waiting(s sharding.ShardInfo) bool {
	return s.State == "unknown" || s.State == "stopping" || s.Stuck > 0 || s.Sent+s.Passed > 0
}

// hosted reports whether a shard lives on the node asked.
func hosted(s sharding.ShardInfo) bool { return s.State == "serving" || s.State == "stopping" }

// reasons asks why the shards are where they are of which ask says so, the first maxReasons of them, and returns
// how many there are besides. Shards of a former number of shards have no reasons: they end.
func (r *RemoteFlags) reasons(list cluster.ShardList, ask func(sharding.ShardInfo) bool) (whys map[int]management.Explanation, more int, err error) {
	latest := latestLayout(list)
	whys = map[int]management.Explanation{}
	for _, s := range list.Shards {
		if s.Layout != latest || !ask(s) {
			continue
		}
		if len(whys) == maxReasons {
			more++
			continue
		}
		var why management.Explanation
		if _, err := r.get("/v1/kinds/"+url.PathEscape(list.Kind)+"/shards/"+strconv.Itoa(s.Shard), nil, &why); err != nil {
			return nil, 0, err
		}
		whys[s.Shard] = why
	}
	return whys, more, nil
}

// latestLayout returns the layout of the shards that stay, see [sharding.ShardInfo].
func latestLayout(list cluster.ShardList) (latest int) {
	for _, s := range list.Shards {
		latest = max(latest, s.Layout)
	}
	return latest
}

// printReasons writes why a shard is where it is, and what is waited for.
func printReasons(s *Session, indent int, stuck int, why management.Explanation) {
	line := func(text string) {
		fmt.Fprintf(s.Stdout, "%*s", indent, "")
		paragraph(s.Stdout, indent, text)
	}
	if why.Reason != "" {
		line("because " + why.Reason)
	}
	if stuck > 0 {
		line(fmt.Sprintf("waits for entities that do not return: %d", stuck))
	}
	for _, pending := range why.Pending {
		line("waits for " + pending)
	}
}

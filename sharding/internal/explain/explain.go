// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package explain says in sentences, for people, what a node knows of its shards and entities.
package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/remembering"
)

// First what is said of a shard: its state, its move, what waits there, and its remembered entities; then what is said
// of an entity and its memory; last how a line of an explanation is laid out.

// Clock returns the wall-clock time of an instant of the past.
type Clock func(t machine.Instant) time.Time

// State names what this node does with a shard.
func State(i cell.Info) string {
	switch {
	case i.Retired:
		return "retired"
	case i.Stopping:
		return "stopping"
	case i.Hosting:
		return "serving"
	case i.Home.IsZero():
		return "unknown"
	default:
		return "hosted elsewhere"
	}
}

// Move describes the move that is under way or planned; empty for none.
func Move(known control.ShardExplanation) string {
	if known.Target.IsZero() && known.Reason == "" && known.Deadline.IsZero() {
		return ""
	}
	text := "moves to where there is room once it has stopped"
	if !known.Target.IsZero() {
		text = "moves to " + known.Target.String()
	}
	if !known.Deadline.IsZero() {
		text += ", called off at " + known.Deadline.UTC().Format(time.RFC3339)
	}
	if known.Reason != "" {
		text += ": " + known.Reason
	}
	return text
}

// Pending says, a sentence each, what waits in a cell of this node.
func Pending(i cell.Info, wall Clock) []string {
	var words []string
	note := func(when bool, text string, args ...any) {
		if when {
			words = append(words, fmt.Sprintf(text, args...))
		}
	}
	note(i.Hosting && i.Suspended, "this node has no standing: no message begins, and no reply leaves")
	note(i.Window > 0, "%d messages of this node wait for the home to take them", i.Window)
	note(i.Transit > 0, "%d messages of others wait here for the next home", i.Transit)
	note(i.Window > 0 && i.Blocked, "the lane to the home is full or broken")
	note(i.Asked && (i.Window > 0 || i.Transit > 0), "the coordinator was asked for a home")
	for _, e := range i.Stuck {
		words = append(words, Entity(e.ID, e, wall))
	}
	note(i.StuckCount > len(i.Stuck), "%d further entities do not return", i.StuckCount-len(i.Stuck))
	return words
}

// Remembered says, a sentence each, what of the remembered entities of a shard of this node is not as it should be.
func Remembered(st remembering.Status, wall Clock) (words []string) {
	switch {
	case !st.Read && st.Why == "":
		words = append(words, "the store of remembered entities is being read: they begin when a message comes, or when it is")
	case !st.Read:
		words = append(words, "the entities that the store remembers do not begin without a message, since it cannot be read")
	}
	switch {
	case !st.Listed:
		words = append(words, "nothing is written to the store of remembered entities, until the home of the first shard has written the number of shards there")
	case st.Taking:
		words = append(words, "entities that were remembered with another number of shards are being taken over, see the first shard of the kind")
	}
	if st.Former > 0 {
		words = append(words, fmt.Sprintf("the store has %d sets of other numbers of shards, whose entities are taken over", st.Former))
	}
	if st.FormerWhy != "" {
		words = append(words, "the store of remembered entities fails for what is taken over: "+st.FormerWhy)
	}
	if st.Starting > 0 {
		words = append(words, fmt.Sprintf("%d remembered entities wait to begin, see sharding.remember.recovery-rate", st.Starting))
	}
	if st.Writing > 0 {
		words = append(words, fmt.Sprintf("%d ids of entities are to be written to the store of remembered entities", st.Writing))
	}
	if st.Why != "" {
		words = append(words, fmt.Sprintf("the store of remembered entities has failed %d times, and is called again at %s: %s",
			st.Failures, wall(st.Again).UTC().Format(time.RFC3339), st.Why))
	}
	return words
}

// Entity says in a sentence, which begins with its id, what an entity is doing.
func Entity(id string, e cell.EntityInfo, wall Clock) string {
	return describe(fmt.Sprintf("entity %q", protocol.Clip(id)), e, wall)
}

// TheEntity is [Entity] where the id was named before.
func TheEntity(e cell.EntityInfo, wall Clock) string { return describe("the entity", e, wall) }

func describe(name string, e cell.EntityInfo, wall Clock) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s", name, e.State)
	if e.State == "failed" {
		fmt.Fprintf(&b, " (%d in a row): %s", e.Failures, e.Reason)
		return b.String()
	}
	fmt.Fprintf(&b, " since %s", wall(e.Since).UTC().Format(time.RFC3339))
	if e.Stuck {
		b.WriteString(", and does not return")
	}
	if e.Released {
		b.WriteString("; its shard has gone on without it")
	}
	if e.Waiting > 0 {
		fmt.Fprintf(&b, "; %d messages wait for it", e.Waiting)
	}
	return b.String()
}

// Loss says in a sentence why an entity has not the memory of its last home.
func Loss(l protocol.Loss) string {
	switch l {
	case protocol.LossFailed:
		return "its Snapshot failed, see the log of the old home"
	case protocol.LossTooLarge:
		return "its snapshot has more bytes than sharding.snapshot-bytes permits"
	case protocol.LossNoRoom:
		return "the snapshots of its shard have more bytes than sharding.snapshot-shard-bytes permits"
	case protocol.LossTooSlow:
		return "its Snapshot took longer than half of sharding.handoff-timeout"
	case protocol.LossRefused:
		return "its Restore failed, see the log of this node"
	case protocol.LossResharded:
		return "the number of shards of its kind changed, and memory does not go to the shards of another layout"
	case protocol.LossIdle:
		return "no message came for sharding.passivate-after"
	default:
		return "it could not be brought here in time, or too much was on its way"
	}
}

// width is the width of the text of an explanation, in columns.
const width = 80

// Line writes a label and a text, broken between words into lines that begin below each
// other.
func Line(b *strings.Builder, label, text string) {
	const indent = 11
	fmt.Fprintf(b, "  %-*s", indent-2, label)
	column := indent
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	b.WriteByte('\n')
}

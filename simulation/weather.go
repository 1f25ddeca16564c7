// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Link says how one direction between two addresses differs from the network.
type Link struct {
	// Min and Max bound the latency, drawn evenly between them. Both zero: that of
	// the network.
	Min, Max time.Duration

	// Loss is the chance that a message is lost, besides that of the network.
	Loss float64
}

// weather is what is wrong with single links, nodes and messages besides the links that
// are cut, and since when.
type weather struct {
	clogged map[int32]bool // Places to and from which nothing passes.
	links   map[link]Link
	losses  []*loss

	changed int64 // World time of the last change from outside, see [World.Steady].
	healed  int64 // World time at which a message may have passed last that could not pass before.
	latest  int64 // The longest time that any network has let a message take.
	normal  Network

	watchers []LinkWatcher
}

// LinkWatcher hears of what happens to the links of a world, within the call that does
// it. It must not change the world.
type LinkWatcher interface {
	// Linked is called when messages may pass between two addresses that could not
	// before, or cannot pass any more, in at least one direction.
	Linked(one, other gossip.Address)

	// Changed is called after each change from outside, see [World.Steady].
	Changed()
}

// WatchLinks adds one who hears of what happens to links.
func (w *World) WatchLinks(l LinkWatcher) { w.weather.watchers = append(w.weather.watchers, l) }

// linked tells those who watch that the link between two places has changed.
func (w *World) linked(one, other int32) {
	for _, l := range w.weather.watchers {
		l.Linked(w.places[one].address, w.places[other].address)
	}
}

// loss is one call of [World.Lose] or [World.LoseService] that has not ended.
type loss struct {
	what    string
	service machine.Service // Whose messages alone are lost; zero: those of any.
	lose    func(from, to gossip.Address, message any) bool
}

// Lose has the messages lost for which lose is true, besides those that other calls
// lose: those of one type, say, while others pass. It ends with the function that it
// returns, or with [World.Heal]. Lose must depend on its arguments alone. What says in
// words which messages, for the trace.
func (w *World) Lose(what string, lose func(from, to gossip.Address, message any) bool) (end func()) {
	return w.loses(&loss{what: what, lose: lose})
}

// LoseService has the messages of one service lost, as when its lane stands still,
// like [World.Lose].
func (w *World) LoseService(s machine.Service, lose func(from, to gossip.Address, message any) bool) (end func()) {
	return w.loses(&loss{what: fmt.Sprintf("service %d", s), service: s, lose: lose})
}

func (w *World) loses(l *loss) (end func()) {
	w.weather.losses = append(w.weather.losses, l)
	w.changes(false)
	w.Log("loses %s", l.what)
	return func() {
		if i := slices.Index(w.weather.losses, l); i >= 0 {
			w.weather.losses = slices.Delete(w.weather.losses, i, i+1)
			w.changes(false)
			w.Log("no longer loses %s", l.what)
		}
	}
}

// SetLink gives the direction between two addresses a quality of its own, until
// [World.Heal]. The zero value takes it away.
func (w *World) SetLink(from, to gossip.Address, l Link) {
	if from == to {
		return
	}
	if w.weather.links == nil {
		w.weather.links = make(map[link]Link)
	}
	key := link{w.place(from).index, w.place(to).index}
	if l == (Link{}) {
		delete(w.weather.links, key)
	} else {
		w.weather.links[key] = l
		w.weather.latest = max(w.weather.latest, int64(l.Max))
	}
	w.changes(false)
	w.Log("link %v -> %v %+v", from, to, l)
}

// Clog lets nothing pass to or from an address, whatever its single links are like,
// until [World.Unclog] or [World.Heal].
func (w *World) Clog(a gossip.Address) {
	if w.weather.clogged == nil {
		w.weather.clogged = make(map[int32]bool)
	}
	w.weather.clogged[w.place(a).index] = true
	w.linksOf(w.place(a).index)
	w.changes(false)
	w.Log("clog %v", a)
}

// Unclog ends [World.Clog].
func (w *World) Unclog(a gossip.Address) {
	delete(w.weather.clogged, w.place(a).index)
	w.linksOf(w.place(a).index)
	w.changes(true)
	w.Log("unclog %v", a)
}

// Mend repairs the direction between two addresses.
func (w *World) Mend(from, to gossip.Address) {
	delete(w.links.cut, link{w.place(from).index, w.place(to).index})
	w.linked(w.place(from).index, w.place(to).index)
	w.changes(true)
	w.Log("mend %v -> %v", from, to)
}

// linksOf tells those who watch that all links of a place have changed.
func (w *World) linksOf(of int32) {
	for _, p := range w.places {
		if p.index != of {
			w.linked(of, p.index)
		}
	}
}

// changes notes that something has changed. Better says that messages may pass
// now which could not before.
func (w *World) changes(better bool) {
	w.weather.changed = w.now
	for _, l := range w.weather.watchers {
		l.Changed()
	}
	if better {
		w.weather.healed = w.now
	}
}

// blockedWay reports whether nothing passes from one place to another.
func (w *World) blockedWay(from, to int32) bool {
	return len(w.links.cut) > 0 && w.links.cut[link{from, to}] ||
		len(w.weather.clogged) > 0 && from != to && (w.weather.clogged[from] || w.weather.clogged[to])
}

// strays reports whether a message is lost although its way is open: by a selective loss,
// or by the chance of its link.
func (w *World) strays(p *packet, to *place) bool {
	for _, l := range w.weather.losses {
		if (l.service == 0 || l.service == p.service) && l.lose(p.from.place.address, to.address, p.message) {
			return true
		}
	}
	if len(w.weather.links) > 0 {
		if l := w.weather.links[link{p.from.place.index, to.index}]; l.Loss > 0 {
			return w.network.Float64() < l.Loss
		}
	}
	return false
}

// way returns how long a message takes from one place to another.
func (w *World) way(from, to int32) int64 {
	if len(w.weather.links) > 0 {
		if l := w.weather.links[link{from, to}]; l.Max > 0 {
			return int64(l.Min) + w.network.Int64N(max(int64(l.Max-l.Min), 1))
		}
	}
	return w.latency()
}

// Steady returns for how long nothing has changed from outside: no fault, no repair,
// no crash, no pause or its end, no new address. That nodes end by themselves and
// are started again is no change. Inside a steady world a cluster may be torn.
func (w *World) Steady() time.Duration { return time.Duration(w.now - w.weather.changed) }

// Quiet returns for how long nothing has been wrong and nothing has changed from
// outside, and false while something is wrong: a link that is cut, clogged or slow, a
// loss, a network that is not the usual one, a frozen node.
func (w *World) Quiet() (time.Duration, bool) {
	if len(w.links.cut) > 0 || len(w.weather.clogged) > 0 || w.Impaired() || slices.ContainsFunc(w.Nodes(), func(n *Node) bool { return n.frozen || n.fuse != nil }) {
		return 0, false
	}
	return w.Steady(), true
}

// Impaired reports whether messages may take longer than usual, or be lost, although
// their links are there: a link has a quality of its own, some messages are lost, or the
// network is worse than the one that the world began with.
func (w *World) Impaired() bool {
	return len(w.weather.links) > 0 || len(w.weather.losses) > 0 || w.opt.Network.worse(w.weather.normal)
}

// Healed returns the last time of the world at which messages may have begun to pass that
// could not before.
func (w *World) Healed() time.Duration { return time.Duration(w.weather.healed) }

// Slowest returns the longest time that any network or link of the world has let a message
// take so far: what was sent longer ago has arrived, or never will.
func (w *World) Slowest() time.Duration { return time.Duration(w.weather.latest) }

// worse reports whether a network is worse than another.
func (c Network) worse(than Network) bool {
	return c.Loss > than.Loss || c.Late > than.Late || c.Double > than.Double || c.Late > 0 && c.LateMax > than.LateMax || c.Max > than.Max
}

// fuse is how much a node still sends before it crashes, see [World.CrashWithin].
type fuse struct {
	left    int                    // Messages.
	matches func(message any) bool // Which messages count; nil: all.
}

// CrashWithin lets the node at an address crash in the middle of a step: once it has
// sent so many more messages, of those that match, nothing more of that step is
// carried out, and the node ends. Nil matches all.
func (w *World) CrashWithin(a gossip.Address, sends int, matches func(message any) bool) {
	if n := w.Node(a); n != nil {
		n.fuse = &fuse{left: max(sends, 1), matches: matches}
		w.Log("%v crashes after %d more messages", n.id, n.fuse.left)
	}
}

// burn counts a message that was sent, and ends the node when it was the last.
func (n *Node) burn(message any) {
	if n.fuse.matches != nil && !n.fuse.matches(message) {
		return
	}
	if n.fuse.left--; n.fuse.left == 0 {
		n.torn, n.quit = true, Crashed
	}
}

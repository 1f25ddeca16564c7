// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"cmp"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
)

// The file begins with the requests and the nodes; then come the steps in the order of the life of a
// request: Submit, place, Take, Heard, Cancel, and those of nodes: Up, Going, Down.

// Instant is a time of the machine, since some beginning.
type Instant time.Duration

// Config bounds the machine.
type Config struct {
	Nodes  int // How many nodes the client knows.
	Queued int // How many requests may wait for a node.
	Bytes  int // How many bytes these may have, unless there is one only.
	Shards int // How many places of shards are remembered for each kind, at most.
	Kinds  int // For how many kinds.
	// Patience is what must be left of a request's time for it to be given again to nodes that have sent it away: its
	// outcome would be unknown for nothing.
	Patience Instant
}

// Code says how a request has ended. The values are those of the wire.
type Code uint8

// The codes, see client.proto.
const (
	OK Code = iota + 1
	NotDelivered
	Expired
	UnknownOutcome
	EntityFailed
	Overloaded
	NoStanding
	Unreachable
	Invalid
	UnknownKind
	Refused // Not of the wire: no node lets this client ask.
)

// elsewhere reports whether another node may do better, after an outcome by which nobody has handled
// the request.
func (c Code) elsewhere() bool { return c == NotDelivered || c == NoStanding || c == UnknownKind }

// place is where a request stands.
type place uint8

const (
	placeNone    place = iota // New, or ended.
	placeWaiting              // Waits for a node with room.
	placeQueued               // Waits for the writer of its node.
	placeWritten              // The node has it, as far as this end knows.
)

// Request is a request of the program, from Submit to its end.
type Request struct {
	Kind, Entity, Trace string
	Payload             []byte
	Tell                bool
	Deadline            Instant // When it ends by itself at the latest.
	Owner               any     // Of the driver.

	ID     uint64 // Names the request on the wire. Set by Submit.
	at     place
	node   int
	tried  []bool // Nodes that have said that another one may do better; nil mostly.
	last   Result // What the last of those has said.
	hash   uint64 // The xxHash64 of the entity's id, by which clusters find its shard.
	sentAt Instant
}

// Result is how a request has ended.
type Result struct {
	Code    Code
	Payload []byte
	Detail  string
}

// Outcome is what a node says of a request.
type Outcome struct {
	ID uint64
	Result
	Shard, Shards int    // Where the entity lives, if Node is not empty.
	Node          string // The name of its node.
}

// Ended is a request that has ended.
type Ended struct {
	Request *Request
	Result
}

// Output is what the driver does after a step.
type Output struct {
	Ended []Ended
	Wake  []int // Nodes whose writers have something to take.
	Room  bool  // There is room for requests that found none.
}

// reset empties the list for the next step.
func (o *Output) reset() { o.Ended, o.Wake, o.Room = o.Ended[:0], o.Wake[:0], false }

// wake has the writer of a node called, once.
func (o *Output) wake(node int) {
	if !slices.Contains(o.Wake, node) {
		o.Wake = append(o.Wake, node)
	}
}

// node is a node as the client knows it.
type node struct {
	up, going bool
	refused   bool   // The node has said that this client may not ask.
	suspect   bool   // It has been silent while a request of it ran out of time.
	name      string // Its address in its cluster.
	window    int
	written   map[uint64]*Request // Without an outcome; nil for one that the client has given up.
	queue     []*Request
	heard     Instant
}

// open reports whether a node takes requests.
func (n *node) open() bool { return n.up && !n.going }

// room is how many requests more the node takes.
func (n *node) room() int { return n.window - len(n.written) - len(n.queue) }

// Broker is the machine.
type Broker struct {
	cfg     Config
	nodes   []node
	names   map[string]int // Nodes by their names.
	waiting []*Request
	bytes   int // Of waiting and queued requests.
	queued  int // Number of waiting and queued requests.
	full    bool
	closed  bool
	last    uint64 // The last number that was given to a request.
	turn    int    // Where the search among equal nodes begins.
	kinds   map[string]*kind
	count   int    // Requests that have not ended.
	why     string // Why no node could be reached, lately.
}

// kind is what the client knows of the places of a kind.
type kind struct {
	shards int
	home   []int16 // By shard: the node, -1 for none.
}

// New returns a machine that knows no node yet.
func New(cfg Config) *Broker {
	d := &Broker{cfg: cfg, nodes: make([]node, cfg.Nodes), names: map[string]int{}, kinds: map[string]*kind{}}
	for i := range d.nodes {
		d.nodes[i].written = map[uint64]*Request{}
	}
	return d
}

// Submit takes a request, or reports that too many wait. The driver offers it again when a step says that
// there is room.
func (d *Broker) Submit(r *Request, out *Output) (taken bool) {
	out.reset()
	if d.closed {
		d.count++
		d.end(r, Result{Code: NotDelivered, Detail: "the client is closed"}, out)
		return true
	}
	if d.queued > 0 && (d.queued >= d.cfg.Queued || d.bytes+len(r.Payload) > d.cfg.Bytes) {
		d.full = true
		return false
	}
	if d.banned() {
		d.count++
		d.end(r, Result{Code: Refused, Detail: d.why}, out)
		return true
	}
	d.last++
	r.ID, r.hash = d.last, xxhash.Sum64String(r.Entity)
	d.count++
	d.queued++
	d.bytes += len(r.Payload)
	r.at = placeWaiting
	if len(d.waiting) > 0 || !d.enqueue(r, out) {
		d.waiting = append(d.waiting, r)
	}
	return true
}

// Count returns how many requests have not ended.
func (d *Broker) Count() int { return d.count }

// Waiting returns how many requests wait for a node or its writer, and the bytes of their messages.
func (d *Broker) Waiting() (requests, bytes int) { return d.queued, d.bytes }

// enqueue gives a request to a node that has room, or reports that none has.
func (d *Broker) enqueue(r *Request, out *Output) bool {
	at := d.choose(r)
	if at < 0 {
		return false
	}
	r.at, r.node = placeQueued, at
	d.nodes[at].queue = append(d.nodes[at].queue, r)
	out.wake(at)
	return true
}

// choose returns the node for a request: that which hosts the entity, else the one with the fewest
// requests under way; -1 if no node takes it. Nodes that are silent come last.
func (d *Broker) choose(r *Request) int {
	if at := d.hint(r); at >= 0 && d.takes(at, r) && !d.nodes[at].suspect {
		return at
	}
	best, load := -1, 0
	for i := range d.nodes {
		at := (d.turn + i) % len(d.nodes)
		n := &d.nodes[at]
		if !d.takes(at, r) {
			continue
		}
		under := len(n.written) + len(n.queue)
		if best < 0 || !n.suspect && d.nodes[best].suspect || n.suspect == d.nodes[best].suspect && under < load {
			best, load = at, under
		}
	}
	d.turn++
	return best
}

// takes reports whether a node can be given a request.
func (d *Broker) takes(at int, r *Request) bool {
	n := &d.nodes[at]
	return n.open() && n.room() > 0 && (r.tried == nil || !r.tried[at])
}

// hint returns the node that hosts an entity, as far as it is known; else -1.
func (d *Broker) hint(r *Request) int {
	k := d.kinds[r.Kind]
	if k == nil {
		return -1
	}
	return int(k.home[r.hash%uint64(k.shards)]) // Not negative.
}

// learn remembers where a shard lives.
func (d *Broker) learn(r *Request, by int, o Outcome) {
	if o.Node == "" {
		if k := d.kinds[r.Kind]; k != nil && o.Code == OK { // It lives where it was asked.
			k.home[r.hash%uint64(k.shards)] = int16(by) // There are few nodes.
		}
		return
	}
	at, known := d.names[o.Node]
	if !known || o.Shards < 1 || o.Shards > d.cfg.Shards || o.Shard < 0 || o.Shard >= o.Shards {
		return
	}
	k := d.kinds[r.Kind]
	if k == nil && len(d.kinds) >= d.cfg.Kinds {
		return
	}
	if k == nil || k.shards != o.Shards {
		k = &kind{shards: o.Shards, home: slices.Repeat([]int16{-1}, o.Shards)}
		d.kinds[r.Kind] = k
	}
	k.home[o.Shard] = int16(at) // There are few nodes.
}

// Take hands the requests of a node to its writer, of so many bytes unless it is one. They count as
// handled from then on, until the node says otherwise.
func (d *Broker) Take(now Instant, at int, most int, into []*Request, out *Output) []*Request {
	out.reset()
	n := &d.nodes[at]
	if !n.open() {
		return into
	}
	taken, bytes := 0, 0
	for _, r := range n.queue {
		bytes += len(r.Payload) + len(r.Entity) + len(r.Kind)
		if taken > 0 && bytes > most {
			break
		}
		taken++
		r.at, r.sentAt = placeWritten, now
		n.written[r.ID] = r
		d.queued--
		d.bytes -= len(r.Payload)
		into = append(into, r)
	}
	rest := copy(n.queue, n.queue[taken:])
	clear(n.queue[rest:])
	n.queue = n.queue[:rest]
	d.offerRoom(out)
	return into
}

// Heard takes the outcomes that a node has sent. One that belongs to no request is dropped: the request
// was given up, or the node is wrong.
func (d *Broker) Heard(now Instant, at int, outcomes []Outcome, out *Output) {
	out.reset()
	n := &d.nodes[at]
	n.heard, n.suspect = now, false
	for _, o := range outcomes {
		r, known := n.written[o.ID]
		if !known {
			continue
		}
		delete(n.written, o.ID)
		if r == nil {
			continue
		}
		d.learn(r, at, o)
		if o.Code.elsewhere() && d.again(r, at, o.Result) {
			continue
		}
		d.end(r, o.Result, out)
	}
	d.dispatch(out)
}

// again gives a request that nobody has handled to another node, if there is one that has not had
// it.
func (d *Broker) again(r *Request, at int, result Result) bool {
	if d.closed {
		return false
	}
	if r.tried == nil {
		r.tried = make([]bool, len(d.nodes))
	}
	r.tried[at], r.last = true, result
	if d.spent(r) && !result.Code.rests() {
		return false
	}
	d.requeue(r)
	return true
}

// requeue has a request that nobody has had, or handled, wait before all others.
func (d *Broker) requeue(r *Request) {
	if r.at == placeWritten {
		d.queued++
		d.bytes += len(r.Payload)
	}
	r.at = placeWaiting
	i, _ := slices.BinarySearchFunc(d.waiting, r.ID, func(w *Request, id uint64) int { return cmp.Compare(w.ID, id) })
	d.waiting = slices.Insert(d.waiting, i, r)
}

// dispatch gives requests that wait to nodes that have room.
func (d *Broker) dispatch(out *Output) {
	kept := d.waiting[:0]
	for i, r := range d.waiting {
		if d.spent(r) {
			if r.last.Code.rests() && !d.closed {
				kept = append(kept, r)
			} else {
				d.end(r, r.last, out)
			}
			continue
		}
		if !d.enqueue(r, out) {
			kept = append(kept, r)
			if r.tried == nil { // No node has room at all.
				kept = append(kept, d.waiting[i+1:]...)
				break
			}
		}
	}
	clear(d.waiting[len(kept):])
	d.waiting = kept
	d.offerRoom(out)
}

// offerRoom says that there is room, if a request has found none.
func (d *Broker) offerRoom(out *Output) {
	if d.full && d.queued < d.cfg.Queued && (d.queued == 0 || d.bytes < d.cfg.Bytes) {
		d.full, out.Room = false, true
	}
}

// rests reports whether a request that every node has sent away is given to them again after a while: they
// may have standing again by then, or others may be up in their place.
func (c Code) rests() bool { return c == NotDelivered || c == NoStanding }

// spent reports whether every node that takes requests has sent a request away.
func (d *Broker) spent(r *Request) bool {
	if r.tried == nil {
		return false
	}
	for i := range d.nodes {
		if d.nodes[i].open() && !r.tried[i] {
			return false
		}
	}
	return true
}

// Cancel ends a request whose program does not wait any longer; false if it has ended already.
func (d *Broker) Cancel(r *Request, out *Output) bool {
	out.reset()
	switch r.at {
	case placeNone:
		return false
	case placeWaiting:
		d.waiting = slices.DeleteFunc(d.waiting, func(w *Request) bool { return w == r })
		d.end(r, d.unsent(r), out)
	case placeQueued:
		n := &d.nodes[r.node]
		n.queue = slices.DeleteFunc(n.queue, func(w *Request) bool { return w == r })
		d.end(r, d.unsent(r), out)
	case placeWritten:
		n := &d.nodes[r.node]
		n.written[r.ID] = nil // The node may answer yet, and has no room for another until then.
		if n.heard < r.sentAt {
			n.suspect = true
		}
		d.end(r, Result{Code: UnknownOutcome, Detail: "no answer came in time"}, out)
	}
	d.dispatch(out)
	return true
}

// unsent is the result of a request that no node has, with why.
func (d *Broker) unsent(r *Request) Result {
	if r.last.Code != 0 {
		return r.last
	}
	for i := range d.nodes {
		if d.nodes[i].open() {
			return Result{Code: Overloaded, Detail: "all nodes have as many requests as they take"}
		}
	}
	return Result{Code: NotDelivered, Detail: cmp.Or(d.why, "no node is connected yet")}
}

// end ends a request.
func (d *Broker) end(r *Request, result Result, out *Output) {
	if r.at == placeWaiting || r.at == placeQueued {
		d.queued--
		d.bytes -= len(r.Payload)
	}
	r.at = placeNone
	d.count--
	out.Ended = append(out.Ended, Ended{r, result})
}

// Up says that a node is connected, and what it takes. A node that was connected must be down before.
func (d *Broker) Up(now Instant, at int, name string, window int, out *Output) {
	out.reset()
	n := &d.nodes[at]
	n.up, n.going, n.suspect, n.refused, n.window, n.heard = true, false, false, false, max(window, 1), now
	if old, ok := d.names[n.name]; ok && old == at {
		delete(d.names, n.name)
	}
	n.name = name
	d.names[name] = at
	d.dispatch(out)
}

// Going says that a node takes no further requests. Those that it has are answered.
func (d *Broker) Going(at int, out *Output) {
	out.reset()
	d.nodes[at].going = true
	d.giveBack(at)
	d.dispatch(out)
}

// banned reports whether every node has said that this client may not ask.
func (d *Broker) banned() bool {
	for i := range d.nodes {
		if !d.nodes[i].refused {
			return false
		}
	}
	return true
}

// Down says that the connection to a node has ended, or could not be made, and why; refused: since this
// client may not ask. If that is so of all nodes, what waits ends: it would wait in vain.
func (d *Broker) Down(at int, why string, refused bool, out *Output) {
	out.reset()
	n := &d.nodes[at]
	n.up, n.refused = false, refused
	d.why = why
	d.giveBack(at)
	ids := make([]uint64, 0, len(n.written))
	for id := range n.written {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if r := n.written[id]; r != nil {
			d.end(r, Result{Code: UnknownOutcome, Detail: why}, out)
		}
	}
	clear(n.written)
	if d.banned() {
		for _, r := range d.waiting {
			d.end(r, Result{Code: Refused, Detail: why}, out)
		}
		d.waiting = nil
	}
	d.dispatch(out)
}

// giveBack has the requests that a node has not had wait for another node.
func (d *Broker) giveBack(at int) {
	n := &d.nodes[at]
	for _, r := range n.queue {
		d.requeue(r)
	}
	clear(n.queue)
	n.queue = n.queue[:0]
}

// Close ends all requests, and those that come later at once.
func (d *Broker) Close(out *Output) {
	out.reset()
	d.closed = true
	for at := range d.nodes {
		n := &d.nodes[at]
		d.giveBack(at)
		ids := make([]uint64, 0, len(n.written))
		for id := range n.written {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		for _, id := range ids {
			if r := n.written[id]; r != nil {
				d.end(r, Result{Code: UnknownOutcome, Detail: "the client is closed"}, out)
			}
		}
		clear(n.written)
		n.up = false
	}
	for _, r := range d.waiting {
		d.end(r, Result{Code: NotDelivered, Detail: "the client is closed"}, out)
	}
	d.waiting = nil
	out.Room = true
}

// Overdue ends the requests whose deadlines have passed, and gives those that have rested to nodes again. The
// driver calls it a few times a second.
func (d *Broker) Overdue(now Instant, out *Output) {
	out.reset()
	var late []*Request
	look := func(r *Request) {
		if r != nil && r.Deadline != 0 && r.Deadline <= now {
			late = append(late, r)
		}
	}
	for _, r := range d.waiting {
		look(r)
	}
	for i := range d.nodes {
		for _, r := range d.nodes[i].queue {
			look(r)
		}
		for _, r := range d.nodes[i].written {
			look(r)
		}
	}
	slices.SortFunc(late, func(a, b *Request) int { return cmp.Compare(a.ID, b.ID) })
	var ended []Ended
	room, wake := false, []int(nil)
	for _, r := range late {
		if d.Cancel(r, out) {
			ended, wake, room = append(ended, out.Ended...), append(wake, out.Wake...), room || out.Room
		}
	}
	for _, r := range d.waiting {
		if d.spent(r) && (r.Deadline == 0 || r.Deadline-now > d.cfg.Patience) {
			r.tried = nil // It has rested.
		}
	}
	out.reset()
	d.dispatch(out)
	ended, wake, room = append(ended, out.Ended...), append(wake, out.Wake...), room || out.Room
	out.Ended, out.Wake, out.Room = ended, wake, room
}

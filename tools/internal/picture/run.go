// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/tools/internal/page"
)

// What was seen of a run: marks, rates and kinds of messages; then the whole as the page reads it.

// The kinds of marks. The page knows these numbers.
const (
	markScript  = iota // What is done to the cluster.
	markBegan          // A node was started.
	markEnded          // A node ended, or stops.
	markDecided        // A decision of a node.
	markFenced         // A node fences another.
)

// Mark is something that happened at a moment.
type Mark struct {
	At   int64  `json:"t"` // In microseconds since the start of the world.
	Kind int    `json:"k"`
	Lane int    `json:"l"` // -1 for the world.
	Text string `json:"x"`
}

// marks keeps the first and the last marks.
type marks struct {
	most  int
	first []Mark
	last  []Mark // A ring.
	all   int
}

func newMarks(most int) marks { return marks{most: most} }

func (m *marks) add(at int64, kind, lane int, text string) {
	mark := Mark{At: at, Kind: kind, Lane: lane, Text: bounded(text)}
	half := m.most / 2
	switch {
	case len(m.first) < half:
		m.first = append(m.first, mark)
	case len(m.last) < half:
		m.last = append(m.last, mark)
	default:
		m.last[(m.all-half)%half] = mark
	}
	m.all++
}

// list returns the kept marks in the order of time, and how many others there were between the
// first and the last ones.
func (m *marks) list() (list []Mark, left int) {
	half := m.most / 2
	list = append(make([]Mark, 0, len(m.first)+len(m.last)), m.first...)
	if left = m.all - len(m.first) - len(m.last); left == 0 {
		return append(list, m.last...), 0
	}
	oldest := (m.all - half) % half
	return append(append(list, m.last[oldest:]...), m.last[:oldest]...), left
}

// bounded cuts a long text.
func bounded(text string) string {
	if len(text) <= maxText {
		return text
	}
	cut := maxText
	for cut > 0 && text[cut]&0xC0 == 0x80 { // Not within a letter.
		cut--
	}
	return text[:cut] + "…"
}

// rates counts messages in buckets of equal width, which is doubled when there is no room.
type rates struct {
	width int // In seconds.
	sent  []int
	lost  []int
}

func (r *rates) add(at time.Duration, lost bool) {
	i := int(at/time.Second) / r.width
	for i >= maxRates {
		for _, counts := range []*[]int{&r.sent, &r.lost} {
			half := make([]int, (len(*counts)+1)/2)
			for j, n := range *counts {
				half[j/2] += n
			}
			*counts = half
		}
		r.width *= 2
		i = int(at/time.Second) / r.width
	}
	for len(r.sent) <= i {
		r.sent, r.lost = append(r.sent, 0), append(r.lost, 0)
	}
	r.sent[i]++
	if lost {
		r.lost[i]++
	}
}

// Kind is a type of messages, with how many were sent, and how many of those were lost.
type Kind struct {
	Name string `json:"name"`
	Sent int    `json:"sent"`
	Lost int    `json:"lost"`
}

// OmittedCounts says how much of a run its page leaves out.
type OmittedCounts struct {
	Lanes    int   `json:"lanes"`    // Addresses without a lane; at most 10,000 are counted.
	Changes  int   `json:"changes"`  // Changes of state before From, in microseconds.
	From     int64 `json:"from"`     // From when on the states are known.
	Messages int   `json:"messages"` // Messages between lanes that are not drawn.
	Few      int   `json:"few"`      // How many of each kind in a second are drawn.
	Marks    int   `json:"marks"`    // Marks in the middle.
}

// Violation is what broke.
type Violation struct {
	At    int64    `json:"t"` // In microseconds.
	Text  string   `json:"text"`
	Trace []string `json:"trace"`
}

// Figure is a number about the run, for people.
type Figure struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Run is what was seen of a run.
type Run struct {
	Name      string        `json:"name"`
	Repeat    string        `json:"repeat"` // The command that repeats the run.
	Recorded  bool          `json:"recorded"`
	End       int64         `json:"end"` // In microseconds.
	Lanes     []string      `json:"lanes"`
	Statuses  []string      `json:"statuses"` // Names of the statuses, by number.
	Changes   [][5]int64    `json:"changes"`
	Messages  [][5]int64    `json:"messages"`
	Kinds     []Kind        `json:"kinds"`
	Marks     []Mark        `json:"marks"`
	Width     int           `json:"width"` // Of a bucket of Sent and Lost, in seconds.
	Sent      []int         `json:"sent"`
	Lost      []int         `json:"lost"`
	Left      OmittedCounts `json:"left"`
	Violation *Violation    `json:"violation"`
	Figures   []Figure      `json:"figures"`
}

// Finish returns what was seen of a run that is over, and ended with an error or without.
func (p *Observer) Finish(err error) Run {
	r := Run{
		Name: nameOf(p.world), Repeat: p.world.Replay(), End: p.now(), Lanes: p.laneNames(), Statuses: statuses(),
		Changes: p.changes.list(), Messages: p.messages.list(), Kinds: p.kinds,
		Width: p.rates.width, Sent: p.rates.sent, Lost: p.rates.lost,
		Left: OmittedCounts{Lanes: len(p.strays), Changes: p.changes.left, From: p.changes.from, Few: p.messages.few},
	}
	r.Marks, r.Left.Marks = p.marks.list()
	r.Left.Messages = p.messages.all - len(r.Messages)
	if failure := (*simulation.Failure)(nil); errors.As(err, &failure) {
		r.Violation = &Violation{At: micros(failure.At), Text: bounded(failure.Err.Error())}
		for _, line := range failure.Lines[max(len(failure.Lines)-maxTail, 0):] {
			r.Violation.Trace = append(r.Violation.Trace, bounded(line))
		}
	}
	s := p.world.Stats()
	r.Figures = []Figure{
		{"virtual time", p.world.Now().Round(time.Millisecond).String()},
		{"steps", fmt.Sprint(s.Steps)},
		{"messages", fmt.Sprint(s.Sent)},
		{"lost", fmt.Sprint(s.Lost)},
		{"refused", fmt.Sprint(s.Refused)},
		{"trace", fmt.Sprintf("%016x", p.world.Trace().Hash())},
	}
	return r
}

// nameOf says what was run.
func nameOf(w *simulation.World) string {
	if _, name, ok := strings.Cut(w.Replay(), " -scenario "); ok {
		return fmt.Sprintf("%s, seed %d", name, w.Seed())
	}
	return fmt.Sprintf("seed %d", w.Seed())
}

// laneNames are the addresses of the lanes, without the port if all have the same.
func (p *Observer) laneNames() []string {
	names, same := make([]string, len(p.places)), true
	for _, a := range p.places {
		same = same && a.Port == p.places[0].Port
	}
	for i, a := range p.places {
		if names[i] = a.String(); same {
			names[i] = a.Host
		}
	}
	return names
}

func statuses() []string {
	var names []string
	for s := gossip.StatusNone; s <= gossip.Removed; s++ {
		names = append(names, s.String())
	}
	return names
}

//go:embed picture.html
var text string

//go:embed picture.css
var style string

//go:embed picture.js
var script string

// Write writes the page.
func (r Run) Write(path string) error {
	return page.Write(path, text, template.FuncMap{
		"pictureStyle":  func() template.CSS { return template.CSS(style) },
		"pictureScript": func() template.JS { return template.JS(script) },
	}, r)
}

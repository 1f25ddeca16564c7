// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// The program in the terminal: a poll follows the last one after a pause; keys change what is shown. The
// screen is drawn from the history and the size of the terminal alone ([Model.screen]).

// The least and the greatest pause between polls, and the least size of a terminal.
const (
	EveryLeast = 100 * time.Millisecond
	MaxEvery   = time.Minute

	columnsLeast = 20
	rowsLeast    = 5
)

// Model shows a cluster. Make one with [New].
type Model struct {
	source Source
	name   string // The node as it was named on the command line.
	now    func() time.Time

	every  time.Duration
	paused bool
	asking bool
	ticket int // The number of the pause that the next poll follows.

	history history
	lost    error     // Why the node does not answer; nil if it does.
	since   time.Time // Since when.
	tries   int

	width, height int
	part          int // 0: an overview; otherwise one section, from 1.
	top           int // The first line of the section that is shown.
	help          bool
}

// New returns a model that asks a source, with a pause between polls.
func New(source Source, name string, every time.Duration, now func() time.Time) *Model {
	return &Model{source: source, name: name, every: every, now: now, width: 80, height: 24}
}

// pollResult is the message with which a poll ends.
type pollResult struct {
	snapshot Snapshot
	err      error
}

// pauseEnded is the message that the pause of a number is over.
type pauseEnded struct{ ticket int }

// Init polls at once.
func (m *Model) Init() tea.Cmd { return m.poll() }

// poll asks the node, unless a poll is under way.
func (m *Model) poll() tea.Cmd {
	if m.asking {
		return nil
	}
	m.asking = true
	return func() tea.Msg {
		s, err := Gather(m.source, m.now)
		return pollResult{s, err}
	}
}

// pause has the next poll follow.
func (m *Model) pause() tea.Cmd {
	if m.paused || m.asking {
		return nil
	}
	m.ticket++
	ticket := m.ticket
	return tea.Tick(m.every, func(time.Time) tea.Msg { return pauseEnded{ticket} })
}

// Update takes a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case pollResult:
		m.asking = false
		m.take(msg)
		return m, m.pause()
	case pauseEnded:
		if msg.ticket == m.ticket && !m.paused {
			return m, m.poll()
		}
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	}
	return m, nil
}

// take notes what came of a poll.
func (m *Model) take(p pollResult) {
	if p.err == nil {
		m.lost, m.tries = nil, 0
		m.history.add(p.snapshot)
		return
	}
	if m.lost == nil {
		m.since = m.now()
	}
	m.lost = p.err
	m.tries++
}

// key does what a key is for.
func (m *Model) key(key string) tea.Cmd {
	page := max(m.height-4, 1)
	switch key {
	case "q", "ctrl+c", "esc":
		return tea.Quit
	case "p", "space":
		m.paused = !m.paused
		if !m.paused {
			return m.poll()
		}
	case "r":
		return m.poll()
	case "+", "=":
		m.every = max(m.every/2, EveryLeast)
		return m.pause()
	case "-":
		m.every = min(m.every*2, MaxEvery)
		return m.pause()
	case "?", "h":
		m.help = !m.help
	case "tab":
		m.part, m.top = (m.part+1)%(parts+1), 0
	case "shift+tab":
		m.part, m.top = (m.part+parts)%(parts+1), 0
	case "0", "1", "2", "3", "4", "5":
		m.part, m.top = int(key[0]-'0'), 0
	case "up", "k":
		m.top--
	case "down", "j":
		m.top++
	case "pgup":
		m.top -= page
	case "pgdown":
		m.top += page
	case "home", "g":
		m.top = 0
	case "end", "G":
		m.top = 1 << 30
	}
	return nil
}

// parts is how many sections there are.
const parts = 5

// View draws the screen.
func (m *Model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "quorate top " + printable(m.name)
	return v
}

// screen returns the lines of the screen, none wider and no more of them than the terminal has.
func (m *Model) screen() []string {
	if m.width < columnsLeast || m.height < rowsLeast {
		return []string{fit(fmt.Sprintf("%d x %d at least", columnsLeast, rowsLeast), m.width)}
	}
	lines := []string{m.title()}
	if m.help {
		return m.cut(append(lines, helpLines(m.width)...))
	}
	lines = append(lines, m.losing()...)
	if m.history.last == nil {
		if m.lost == nil {
			lines = append(lines, "asking "+printable(m.name)+" …")
		}
		return m.cut(append(lines, "", paint(dim, "q ends")))
	}
	lines = append(lines, head(m.history.last, m.width)...)
	all := sections(&m.history, m.width)
	room := m.height - 1 - len(lines)
	if m.part > 0 {
		lines = append(lines, m.scrolled(all[m.part-1], room)...)
	} else {
		lines = append(lines, shared(all, room)...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return append(m.cut(lines[:min(len(lines), m.height-1)]), fit(m.foot(), m.width))
}

// cut cuts lines to the size of the terminal.
func (m *Model) cut(lines []string) []string {
	lines = lines[:min(len(lines), m.height)]
	for i, line := range lines {
		lines[i] = fit(line, m.width)
	}
	return lines
}

// title is the first line.
func (m *Model) title() string {
	name := printable(m.name)
	if m.history.last != nil {
		name = short(m.history.last.Members.Self)
	}
	state := "every " + m.every.String()
	if m.paused {
		state = "paused"
	}
	left, right := " quorate top  "+name, clock(m.now())+"  "+state+" "
	if m.width < ansi.StringWidth(left)+ansi.StringWidth(right)+1 {
		left, right = " "+name, ""
	}
	return paint(turned, pad(left, m.width-len(right))+right)
}

// losing says that the node does not answer.
func (m *Model) losing() []string {
	if m.lost == nil {
		return nil
	}
	silent := m.now().Sub(m.since).Truncate(time.Second)
	lines := []string{paint(red, fmt.Sprintf("No answer since %s, for %v, after %d tries", clock(m.since), silent, m.tries))}
	lines = append(lines, paint(red, printable(m.lost.Error())))
	if m.history.last != nil {
		lines = append(lines, paint(dim, "What follows is of "+clock(m.history.last.At)+"; the node is asked again and again."))
	}
	return lines
}

// foot is the last line.
func (m *Model) foot() string {
	if m.width < wide {
		return paint(dim, "q ends ? help")
	}
	return paint(dim, "q ends   tab next part   0 all   up down scroll   p pause   + - pace   ? help")
}

// scrolled shows a section from the line that was scrolled to.
func (m *Model) scrolled(s section, room int) []string {
	m.top = max(min(m.top, len(s.lines)-(room-1)), 0)
	end := max(min(m.top+room-1, len(s.lines)), m.top)
	if hidden := len(s.lines) - (end - m.top); hidden > 0 {
		s.note += fmt.Sprintf(", %d to %d", m.top+1, end)
	}
	return append([]string{titled(s)}, s.lines[m.top:end]...)
}

func titled(s section) string { return paint(bold, s.title) + " " + paint(dim, s.note) }

// shared shows the sections that have lines, as many as there is room for, and gives them lines in turn.
func shared(all []section, room int) []string {
	var there []section
	for _, s := range all {
		if len(s.lines) > 0 {
			there = append(there, s)
		}
	}
	for len(there) > 1 && room < 4*len(there) { // A title, an empty line, and two lines each.
		there = there[:len(there)-1]
	}
	given := make([]int, len(there))
	left := room - 2*len(there)
	for gave := true; gave && left > 0; {
		gave = false
		for i, s := range there {
			if given[i] < len(s.lines) && left > 0 {
				given[i]++
				left--
				gave = true
			}
		}
	}
	var lines []string
	for i, s := range there {
		lines = append(lines, "")
		if hidden := len(s.lines) - given[i]; hidden > 0 {
			s.note += fmt.Sprintf(", %d more", hidden)
		}
		lines = append(append(lines, titled(s)), s.lines[:given[i]]...)
	}
	return lines
}

func helpLines(width int) []string {
	keys := [][2]string{
		{"0", "all parts"},
		{"1 to 5", "members, kinds, rates, moves, decisions"},
		{"tab", "the next part"},
		{"up down", "scroll a part, also page up and down"},
		{"p", "pause, and go on"},
		{"r", "ask at once"},
		{"+ -", "ask more often, or less"},
		{"?", "this help, and back"},
		{"q", "end"},
	}
	lines := []string{""}
	for _, k := range keys {
		if width < narrow {
			lines = append(lines, k[0], "  "+k[1])
			continue
		}
		lines = append(lines, fmt.Sprintf("  %-9s %s", k[0], k[1]))
	}
	return lines
}

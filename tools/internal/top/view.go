// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/quorate/quorate/management"
)

// How a snapshot looks: each part is a section of lines ([sections]), cut to the width of the terminal. What
// the node says is made printable first, since names in it were chosen by others.

// Colours, by the numbers of a terminal.
const (
	plain  = 0
	bold   = 1
	dim    = 2
	turned = 7
	red    = 31
	green  = 32
	yellow = 33
	blue   = 36
)

func paint(colour int, text string) string {
	if colour == plain || text == "" {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, text)
}

// printable replaces what would move the cursor or change colours.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// fit cuts a line to a width.
func fit(line string, width int) string { return ansi.Truncate(line, width, "…") }

// pad fills a text up to a width, or cuts it.
func pad(text string, width int) string {
	text = fit(text, width)
	return text + strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
}

// short is a node without its incarnation.
func short(node string) string {
	name, _, _ := strings.Cut(node, "#")
	return printable(name)
}

// section is a part of what is shown.
type section struct {
	title string
	note  string // Behind the title.
	lines []string
}

// sections returns all parts in their order.
func sections(p *history, width int) []section {
	s := p.last
	return []section{memberSection(p, width), kindSection(s, width), rateSection(p, width), moveSection(p), decisionSection(s, width)}
}

// head returns the lines above the sections: what the asked node says of itself and the cluster.
func head(s *Snapshot, width int) []string {
	m := s.Members
	standing := paint(green, "held")
	if !m.Standing {
		standing = paint(red, "not held")
	}
	leader := short(m.Leader)
	if leader == "" {
		leader = paint(yellow, "none")
	}
	agreed := paint(green, "yes")
	if !m.Converged {
		agreed = paint(yellow, "no")
	}
	items := []string{"standing " + standing, "leader " + leader, "agreed " + agreed, fmt.Sprintf("voters %d", len(m.Voters))}
	lines := flow(items, width)
	say := func(colour int, label, text string) {
		if text != "" {
			lines = append(lines, paint(colour, fit(label+printable(text), width)))
		}
	}
	say(red, "not ready: ", strings.Join(s.NotReady, "; "))
	if !m.Converged {
		say(dim, "agreement waits: ", incarnations(m.Blockers))
	}
	if m.Waiting != nil {
		say(yellow, "waits: ", m.Waiting.Reason)
		say(dim, "cure: ", m.Waiting.Cure)
	}
	say(yellow, "yielded to ", m.Yielded)
	for _, x := range s.Missing {
		say(dim, "no "+x.What+": ", x.Why)
	}
	return lines
}

// flow puts items into lines.
func flow(items []string, width int) []string {
	var lines []string
	line := ""
	for _, item := range items {
		switch {
		case line == "":
			line = item
		case ansi.StringWidth(line)+3+ansi.StringWidth(item) <= width:
			line += "   " + item
		default:
			lines, line = append(lines, fit(line, width)), item
		}
	}
	return append(lines, fit(line, width))
}

// statusOf returns the status of a member for people, with its colour.
func statusOf(m management.Member) (string, int) {
	status := printable(m.Status)
	switch {
	case len(m.UnreachableFor) > 0 && status != "down":
		return status + " !", red
	case status == "up":
		return status, green
	case status == "down":
		return status, red
	}
	return status, yellow
}

// The least width at which a table has all of its columns.
const (
	wide   = 56
	narrow = 34
)

func memberSection(p *history, width int) section {
	s := p.last
	sec := section{title: "MEMBERS", note: fmt.Sprint(len(s.Members.Members))}
	if width >= wide {
		sec.title = "AGE  STATUS       SHARDS  MEMBERS"
	}
	lost, shards := 0, hosted(s)
	for _, m := range s.Members.Members {
		if len(m.UnreachableFor) > 0 {
			lost++
		}
		sec.lines = append(sec.lines, memberLine(s, m, shards, width))
	}
	if lost > 0 {
		sec.note += paint(red, fmt.Sprintf(", %d unreachable", lost))
	}
	for _, g := range p.gone {
		text := fmt.Sprintf("%-13s%s", "gone", short(g.member.Node))
		if width < narrow {
			text = fmt.Sprintf("%-7s %s", "gone", short(g.member.Node))
		}
		if width >= wide {
			text = fmt.Sprintf("%3s  %-13s%6s  %s, since %s", "", "gone", "", short(g.member.Node), clock(g.at))
		}
		sec.lines = append(sec.lines, paint(dim, text))
	}
	return sec
}

func memberLine(s *Snapshot, m management.Member, shards map[string]int, width int) string {
	status, colour := statusOf(m)
	var flags []string
	add := func(is bool, flag string) {
		if is {
			flags = append(flags, flag)
		}
	}
	add(m.Node == s.Members.Self, "asked")
	add(m.Node == s.Members.Leader, "leader")
	add(!m.Voter, "no vote")
	add(!m.Seen && width >= wide, "has not seen this")
	add(m.Zone != "" && width >= wide, "zone "+printable(m.Zone))
	add(m.Version != "" && m.Version != "0.0.0" && width >= wide, printable(m.Version))
	name := short(m.Node)
	if width < narrow {
		return pad(paint(colour, status), 7) + " " + name
	}
	if len(flags) > 0 {
		name += paint(dim, "  "+strings.Join(flags, ", "))
	}
	if len(m.UnreachableFor) > 0 {
		name += paint(red, fmt.Sprintf("  unreachable for %d", len(m.UnreachableFor)))
	}
	if m.DownedWhy != "" {
		name += paint(dim, "  "+printable(m.DownedWhy))
	}
	if width < wide {
		return pad(paint(colour, status), 13) + name
	}
	age, has := "-", "-"
	if m.Age > 0 {
		age = fmt.Sprint(m.Age)
	}
	if shards != nil {
		has = fmt.Sprint(shards[m.Node])
	}
	return fmt.Sprintf("%3s  %s%6s  %s", age, pad(paint(colour, status), 13), has, name)
}

func kindSection(s *Snapshot, width int) section {
	sec := section{title: "KINDS", note: fmt.Sprint(len(s.Kinds))}
	for _, k := range s.Kinds {
		var facts []string
		add := func(n int, what string, colour int) {
			if n > 0 {
				facts = append(facts, paint(colour, fmt.Sprintf("%d %s", n, what)))
			}
		}
		add(k.Homeless, "without a home", red)
		add(k.Stopping, "stopping here", yellow)
		add(k.Entities, "entities here", plain)
		add(k.Waiting, "messages wait", yellow)
		if k.Coordinator == "" {
			facts = append(facts, paint(red, coordinatorOf(k)))
		}
		here := fmt.Sprintf("%d of %d", k.Hosted, k.Shards)
		if k.Proxy {
			here = fmt.Sprintf("- of %d", k.Shards)
		}
		name := printable(k.Name)
		if width < narrow {
			sec.lines = append(sec.lines, pad(name, width-len(here)-1)+" "+here)
			continue
		}
		line := pad(name, 18) + " " + pad(here, 13) + " " + strings.Join(facts, ", ")
		if width >= wide && k.Coordinator != "" {
			line += paint(dim, "  by "+short(k.Coordinator))
		}
		sec.lines = append(sec.lines, line)
	}
	return sec
}

// coordinatorOf says why the coordinator of a kind is not named: there is none, or it is not known.
func coordinatorOf(k Kind) string {
	if k.NoCoordinator == "" {
		return "coordinator not known"
	}
	return "no coordinator: " + printable(k.NoCoordinator)
}

// bars are the heights of a sparkline.
const bars = "▁▂▃▄▅▆▇█"

// spark draws the last values.
func spark(values []float64, width int) string {
	values = values[max(len(values)-width, 0):]
	most := 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			most = max(most, v)
		}
	}
	signs := []rune(bars)
	var b strings.Builder
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
		case most == 0:
			b.WriteRune(signs[0])
		default:
			b.WriteRune(signs[min(int(v/most*float64(len(signs)-1)+0.5), len(signs)-1)])
		}
	}
	return b.String()
}

// amount writes a number in at most 6 columns.
func amount(v float64) string {
	for _, unit := range []string{"", "k", "M", "G", "T"} {
		if v < 1000 || unit == "T" {
			if v < 10 && v != math.Trunc(v) {
				return fmt.Sprintf("%.1f%s", v, unit)
			}
			return fmt.Sprintf("%.0f%s", v, unit)
		}
		v /= 1000
	}
	return ""
}

func rateSection(p *history, width int) section {
	sec := section{title: "RATES", note: "a second"}
	for _, r := range Rates() {
		values := p.rates[r[0]]
		if len(values) == 0 {
			continue
		}
		now := "-"
		if last := values[len(values)-1]; !math.IsNaN(last) {
			now = amount(last)
		}
		label := min(18, max(width-8, 1))
		line := pad(r[0], label) + fmt.Sprintf(" %7s", now)
		if room := width - label - 10; room > 3 {
			line += "  " + paint(blue, spark(values, room))
		}
		sec.lines = append(sec.lines, line)
	}
	return sec
}

func clock(t time.Time) string { return t.Local().Format("15:04:05") }

func moveSection(p *history) section {
	sec := section{title: "MOVES", note: fmt.Sprintf("%d seen", p.moved)}
	name := func(node string) string {
		if node == "" {
			return "nowhere"
		}
		return short(node)
	}
	for _, m := range slices.Backward(p.moves) {
		what := fmt.Sprintf("shard %d", m.shard)
		if m.shards > 1 {
			what = fmt.Sprintf("%d shards", m.shards)
		}
		sec.lines = append(sec.lines, fmt.Sprintf("%s %s of %s  %s → %s", clock(m.at), what, printable(m.kind), name(m.from), name(m.to)))
	}
	return sec
}

func decisionSection(s *Snapshot, width int) section {
	sec := section{title: "DECISIONS", note: "of " + short(s.Members.Self)}
	for _, d := range slices.Backward(s.Decisions) {
		text := fmt.Sprintf("%s of %s: %s", printable(d.Topic), incarnations(printable(d.Subject)), incarnations(printable(d.Verdict)))
		if width < narrow {
			sec.lines = append(sec.lines, text)
			continue
		}
		line := clock(d.At) + " " + text
		if d.Reason != "" {
			line += paint(dim, ". "+incarnations(printable(d.Reason)))
		}
		sec.lines = append(sec.lines, line)
	}
	return sec
}

// incarnationLeast is how many digits an incarnation has at least: it is a random number, written without zeros
// in front.
const incarnationLeast = 8

// incarnations leaves most of each incarnation out: "host:7946#1b0f2e3d4c5b6a79" is "host:7946#1b0f".
func incarnations(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "#")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		digits := 0
		for digits < len(after) && strings.IndexByte("0123456789abcdef", after[digits]) >= 0 {
			digits++
		}
		b.WriteByte('#')
		if digits >= incarnationLeast {
			b.WriteString(after[:4])
			after = after[digits:]
		}
		text = after
	}
}

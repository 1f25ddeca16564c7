// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command_test

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"image/color"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/tools/internal/command"
)

// Pictures of quorate top: a node that tells of a cluster which loses a member ([losing]) is looked at in a
// terminal, and what that shows is drawn ([screen.picture]). With QUORATE_PICTURES they are kept in that
// directory, see make pictures.

// losing is a node that tells of a cluster of four, which loses its third member: it cannot be reached, is
// declared down and removed, and its shards get other homes.
type losing struct {
	round atomic.Int64 // How often it was asked for members.
	state atomic.Int64 // What it tells: see below.

	opened atomic.Int64  // How many connections it has had.
	closed chan struct{} // One for each that was closed; there is room for all of a test.
}

const (
	allAreUp = iota
	oneIsLost
	oneIsGone
)

func newLosing() *losing { return &losing{closed: make(chan struct{}, 100)} }

// id is the id of a member of that cluster.
func (*losing) id(i int) string {
	return fmt.Sprintf("10.0.0.%d:7946#%016x", i+1, 0x1b0f2e3d4c5b6a79*uint64(i+3))
}

func (l *losing) members() management.ClusterMembers {
	got := management.ClusterMembers{Self: l.id(0), Leader: l.id(0), Standing: true, Converged: true}
	for i := range 4 {
		m := management.Member{Node: l.id(i), Status: "up", Age: i + 1, Voter: true, Seen: true}
		switch state := l.state.Load(); {
		case i == 2 && state == oneIsGone:
			continue
		case i == 2 && state == oneIsLost:
			m.Seen, m.UnreachableFor = false, []string{l.id(0), l.id(1), l.id(3)}
			got.Converged, got.Blockers = false, "unreachable "+l.id(2)
		}
		got.Voters, got.Members = append(got.Voters, m.Node), append(got.Members, m)
	}
	return got
}

func (l *losing) shards() cluster.ShardList {
	list := cluster.ShardList{Self: l.id(0), Kind: "account"}
	for s := range 1000 {
		info := sharding.ShardInfo{Shard: s, State: "hosted elsewhere", Home: l.id(s % 4)}
		if l.state.Load() == oneIsGone && s%4 == 2 {
			info.Home = l.id([]int{0, 1, 3}[s/4%3])
		}
		if info.Home == l.id(0) {
			info.State, info.Entities = "serving", 40+s%7
		}
		list.Shards = append(list.Shards, info)
	}
	return list
}

func (l *losing) decisions() management.DecisionList {
	list := management.DecisionList{Self: l.id(0)}
	add := func(component, topic, subject, verdict, reason string) {
		list.Decisions = append(list.Decisions, management.Decision{At: time.Now().UTC(), Component: component, Topic: topic, Subject: subject, Verdict: verdict, Reason: reason})
	}
	add("sharding", "allocation", "account", "1000 shards: 250 to each", "least-shard: its share is 250 of 1000 shards on 4 regions")
	if l.state.Load() > allAreUp {
		add("membership", "reachability", l.id(2), "unreachable", "no answer to heartbeats for 4.6s, phi 8.0")
	}
	if l.state.Load() == oneIsGone {
		add("membership", "downing", l.id(2), "down", "keep-majority: this side has 3 of 4 voters; downed are 1 lost and 0 indirectly connected")
		add("membership", "leader", l.id(2), "removed", "all other voters have seen it down")
		add("sharding", "allocation", "account", "250 shards: 84, 83 and 83 to the others", "least-shard: its share is 334 of 1000 shards on 3 regions")
	}
	return list
}

// metrics are counters that go up by more or less each time.
func (l *losing) metrics() string {
	n := float64(l.round.Load())
	of := func(name string, each, wave float64) string {
		return fmt.Sprintf("quorate_%s %.0f\n", name, each*(n+wave*math.Sin(n/3)+wave/2*math.Sin(n/1.3)))
	}
	return of("sharding_messages_sent_total", 410, 2) + of("sharding_messages_handled_total", 260, 1.6) + of("sharding_messages_failed_total", 0, 0) +
		of("node_messages_total", 55, 1) + of("node_io_bytes_total", 3100, 1.2) + of("node_decisions_total", 0.1, 0)
}

// serve serves the node, and returns its URL.
func (l *losing) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	for path, answer := range map[string]func() any{
		"/v1/members": func() any { l.round.Add(1); return l.members() }, "/v1/decisions": func() any { return l.decisions() },
		"/health/ready": func() any { return management.HealthStatus{Status: "ready"} },
		"/v1/kinds": func() any {
			hosted := 250
			if l.state.Load() == oneIsGone {
				hosted = 334
			}
			return management.KindList{Self: l.id(0), Kinds: []management.Kind{{Name: "account", Shards: 1000, Hosted: hosted, Coordinator: l.id(0)}}}
		},
		"/v1/kinds/account/shards": func() any { return l.shards() },
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(answer()) })
	}
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, l.metrics()) })
	server := httptest.NewUnstartedServer(mux)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			l.opened.Add(1)
		case http.StateClosed:
			l.closed <- struct{}{}
		case http.StateActive, http.StateIdle, http.StateHijacked:
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// The size of a cell of a picture, in pixels, and its colours: those of a dark terminal.
const (
	cellWide, cellHigh, edge = 8.4, 18.0, 14.0

	backColour, foreColour, dimColour = "#16181d", "#e6e7eb", "#9a9eaa"

	attrBold, attrFaint, attrReverse = 1, 2, 32 // Of a cell of the emulator.
)

// colourOf returns one of the colours that the program uses, the usual one for none.
func colourOf(c color.Color) string {
	if basic, ok := c.(ansi.BasicColor); ok {
		return cmp.Or(map[ansi.BasicColor]string{ansi.Red: "#ff7b80", ansi.Green: "#54c795", ansi.Yellow: "#e5b454", ansi.Cyan: "#7cc4ea"}[basic], foreColour)
	}
	return foreColour
}

// picture draws what the terminal shows as SVG: runs of cells of one look are one text each, with the width that
// they have in the terminal, whatever font draws them.
func (s *screen) picture() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	columns, rows := s.emulator.Width(), s.emulator.Height()
	var b strings.Builder
	wide, high := float64(columns)*cellWide+2*edge, float64(rows)*cellHigh+2*edge
	fmt.Fprintf(&b, "<!-- Copyright The Quorate Authors\n     SPDX-License-Identifier: Apache-2.0 -->\n"+
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\">\n"+
		"<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"%s\"/>\n", wide, high, wide, high, backColour)
	for y := range rows {
		for x := 0; x < columns; {
			look, text := s.look(x, y)
			end := x + 1
			for ; end < columns; end++ {
				next, more := s.look(end, y)
				if next != look {
					break
				}
				text += more
			}
			drawRun(&b, x, y, end-x, look, text)
			x = end
		}
	}
	return b.String() + "</svg>\n"
}

// look is how a cell looks; bars are drawn, not written.
type look struct {
	colour string
	bold   bool
	turned bool
	bar    bool
}

// look returns the look of a cell and its text.
func (s *screen) look(x, y int) (look, string) {
	cell := s.emulator.CellAt(x, y)
	if cell == nil || cell.Content == "" {
		return look{colour: foreColour}, " "
	}
	l := look{colour: colourOf(cell.Style.Fg), bold: cell.Style.Attrs&attrBold != 0, turned: cell.Style.Attrs&attrReverse != 0, bar: strings.ContainsAny(cell.Content, "▁▂▃▄▅▆▇█")}
	if cell.Style.Attrs&attrFaint != 0 {
		l.colour = dimColour
	}
	return l, cell.Content
}

// drawRun draws cells of one look.
func drawRun(b *strings.Builder, x, y, cells int, l look, text string) {
	left, top, wide := edge+float64(x)*cellWide, edge+float64(y)*cellHigh, float64(cells)*cellWide
	if l.turned {
		fmt.Fprintf(b, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", left, top, wide, cellHigh, l.colour)
		l.colour = backColour
	}
	if l.bar {
		for i, r := range []rune(text) {
			high := float64(r-'▁'+1) / 8 * (cellHigh - 4)
			fmt.Fprintf(b, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", left+float64(i)*cellWide, top+cellHigh-2-high, cellWide-1, high, l.colour)
		}
		return
	}
	trimmed := strings.TrimRight(text, " ")
	if trimmed == "" {
		return
	}
	weight := ""
	if l.bold {
		weight = " font-weight=\"700\""
	}
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\"%s xml:space=\"preserve\" textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\">%s</text>\n",
		left, top+13.5, l.colour, weight, float64(utf8.RuneCountInString(trimmed))*cellWide, html.EscapeString(trimmed))
}

// A cluster loses a member while somebody looks, on 80 columns and on 30; the picture of it has what the terminal
// shows.
func TestTopInPictures(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 32}, {30, 20}} {
		t.Run(fmt.Sprint(size[0]), func(t *testing.T) {
			t.Parallel()
			l := newLosing()
			s := newScreen(t, size[0], size[1])
			ended := s.run("-node", l.serve(t), "-every", "100ms")
			s.shows(t, "10.0.0.3:7946", "account")
			for l.round.Load() < 30 {
				<-s.drawn
			}
			l.state.Store(oneIsLost)
			s.shows(t, "up !", "agreed no")
			l.state.Store(oneIsGone)
			s.shows(t, "gone", "agreed yes", "334 of 1000")
			if size[0] == 80 {
				s.shows(t, "84 shards of account")
			}
			drawn := s.picture()
			_, err := s.keyboard.WriteString("q")
			require.NoError(t, err)
			require.Equal(t, command.StatusOK, <-ended)

			for all := xml.NewDecoder(strings.NewReader(drawn)); !errors.Is(err, io.EOF); {
				if _, err = all.Token(); !errors.Is(err, io.EOF) {
					require.NoError(t, err)
				}
			}
			for _, want := range []string{"gone", "10.0.0.4:7946", "q ends"} {
				require.Contains(t, drawn, want)
			}
			if dir := os.Getenv("QUORATE_PICTURES"); dir != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("top-%d.svg", size[0])), []byte(drawn), 0o600))
			}
		})
	}
}

// All that quorate top asks goes over one connection, which it closes in the end, in a terminal and without one.
func TestTopKeepsItsConnection(t *testing.T) {
	t.Parallel()
	patience.Watch(t)
	l := newLosing()
	url := l.serve(t)
	s := newScreen(t, 80, 24)
	ended := s.run("-node", url, "-every", "100ms")
	for l.round.Load() < 10 {
		<-s.drawn
	}
	require.EqualValues(t, 1, l.opened.Load())
	_, err := s.keyboard.WriteString("q")
	require.NoError(t, err)
	require.Equal(t, command.StatusOK, <-ended)
	<-l.closed

	status, _, stderr := topOnce("-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	<-l.closed
	require.EqualValues(t, 2, l.opened.Load())
}

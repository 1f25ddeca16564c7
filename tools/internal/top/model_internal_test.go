// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/sharding"
)

const (
	one = "10.0.0.1:7946#1b0f2e3d4c5b6a79"
	two = "10.0.0.2:7946#2f3d4c5b6a790b1e"
)

// fake is a node that answers what it is told to.
type fake struct {
	down    error
	members management.ClusterMembers
	shards  []sharding.ShardInfo
	sent    int
	noRates bool
	asked   []string
}

func newFake() *fake {
	return &fake{
		members: management.ClusterMembers{
			Self: one, Standing: true, Leader: one, Converged: true, Voters: []string{one, two},
			Members: []management.Member{
				{Node: one, Status: "up", Age: 1, Voter: true, Seen: true, Zone: "east"},
				{Node: two, Status: "up", Age: 2, Voter: true, Seen: true},
			},
		},
		shards: []sharding.ShardInfo{{Shard: 0, State: "serving", Home: one, Entities: 5}, {Shard: 1, State: "hosted elsewhere", Home: two}, {Shard: 2, State: "hosted elsewhere", Home: two}},
	}
}

func (f *fake) Get(path string, _ url.Values, into any) error {
	f.asked = append(f.asked, path)
	if f.down != nil {
		return f.down
	}
	switch into := into.(type) {
	case *management.ClusterMembers:
		*into = f.members
	case *management.HealthStatus:
		into.Status = "ready"
	case *management.KindList:
		into.Kinds = []management.Kind{{Name: "account", Shards: 3, Hosted: 1, Coordinator: one}}
	case *cluster.ShardList:
		into.Shards = append([]sharding.ShardInfo{}, f.shards...)
	case *management.DecisionList:
		into.Decisions = []management.Decision{{At: start, Component: "membership", Topic: "downing", Subject: two, Verdict: "down", Reason: "keep-majority: \x1b[31mit is lost"}}
	default:
		return fmt.Errorf("%s is not known", path)
	}
	return nil
}

func (f *fake) Text(string) (string, error) {
	if f.down != nil {
		return "", f.down
	}
	if f.noRates {
		return "", errors.New("there are none")
	}
	return fmt.Sprintf("# HELP x\nquorate_sharding_messages_sent_total{quorate_kind=\"a} b\"} %d\nquorate_sharding_messages_sent_total{quorate_kind=\"c\"} 1\nnonsense\n\n{ 1\n", f.sent), nil
}

var start = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// world is a model with a clock of its own, whose polls are carried out at once.
type world struct {
	*Model
	node *fake
	time time.Time
}

func newWorld() *world {
	w := &world{node: newFake(), time: start}
	w.Model = New(w.node, "http://10.0.0.1:8080", 2*time.Second, func() time.Time { return w.time })
	return w
}

// look has the model poll, some time later.
func (w *world) look(after time.Duration) {
	w.time = w.time.Add(after)
	if cmd := w.poll(); cmd != nil {
		w.Update(cmd())
	}
}

func (w *world) press(keys ...string) (last tea.Cmd) {
	named := map[string]tea.KeyPressMsg{
		"down": {Code: tea.KeyDown}, "up": {Code: tea.KeyUp}, "end": {Code: tea.KeyEnd}, "tab": {Code: tea.KeyTab}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
		"space": {Code: tea.KeySpace, Text: " "},
	}
	for _, key := range keys {
		msg, ok := named[key]
		if !ok {
			msg = tea.KeyPressMsg{Code: []rune(key)[0], Text: key}
		}
		_, last = w.Update(msg)
	}
	return last
}

func (w *world) text() string { return ansi.Strip(strings.Join(w.screen(), "\n")) }

func TestOverviewShowsAllPartsIn80Columns(t *testing.T) {
	w := newWorld()
	require.Contains(t, w.text(), "asking http://10.0.0.1:8080")
	w.Update(tea.WindowSizeMsg{Width: 80, Height: 30})
	w.look(0)
	w.node.sent = 40
	w.node.shards[1].Home = one
	w.look(2 * time.Second)
	text := w.text()
	for _, want := range []string{
		"standing held   leader 10.0.0.1:7946   agreed yes   voters 2",
		"AGE  STATUS       SHARDS  MEMBERS 2",
		"  1  up                2  10.0.0.1:7946  asked, leader, zone east",
		"  2  up                1  10.0.0.2:7946",
		"account            1 of 3        5 entities here  by 10.0.0.1:7946",
		"sent to entities        20  █",
		"shard 1 of account  10.0.0.2:7946 → 10.0.0.1:7946",
		"downing of 10.0.0.2:7946#2f3d: down. keep-majority: �[31mit is lost",
	} {
		require.Contains(t, text, want)
	}
	require.Len(t, strings.Split(text, "\n"), 30)
	require.NotContains(t, text, "\x1b")
}

// That a coordinator is not known does not mean that there is none.
func TestUnknownCoordinatorIsNotNone(t *testing.T) {
	for want, k := range map[string]management.Kind{
		"coordinator not known":                         {},
		`no coordinator: no node has the role "worker"`: {NoCoordinator: `no node has the role "worker"`},
	} {
		k.Name = "account"
		s := &Snapshot{Kinds: []Kind{{Kind: k}}}
		require.Contains(t, ansi.Strip(strings.Join(kindSection(s, 120).lines, "\n")), want)
	}
}

func TestNodeThatGoesAwayIsShownAndFoundAgain(t *testing.T) {
	w := newWorld()
	w.node.down = errors.New("connection refused")
	w.look(0)
	require.Contains(t, w.text(), "No answer since ")
	require.Contains(t, w.text(), "after 1 tries")
	w.node.down = nil
	w.look(time.Second)
	require.NotContains(t, w.text(), "No answer")
	w.node.down = errors.New("connection refused")
	w.look(time.Second)
	w.look(9 * time.Second)
	text := w.text()
	require.Contains(t, text, "for 9s, after 2 tries")
	require.Contains(t, text, "connection refused")
	require.Contains(t, text, "10.0.0.2:7946", "what it said last is still shown")
	w.node.down = nil
	w.node.members.Members = w.node.members.Members[:1]
	w.look(time.Second)
	require.NotContains(t, w.text(), "No answer")
	require.Contains(t, w.text(), "     gone                 10.0.0.2:7946, since ")
	w.look(2 * goneFor)
	require.NotContains(t, w.text(), "gone")
}

func TestTroubleIsSaid(t *testing.T) {
	w := newWorld()
	w.node.members.Standing, w.node.members.Converged, w.node.members.Leader = false, false, ""
	w.node.members.Blockers = "unreachable " + two
	w.node.members.Members[1].UnreachableFor = []string{one}
	w.node.members.Waiting = &management.Waiting{Reason: "voters are missing", Cure: "start them"}
	w.node.noRates = true
	w.look(0)
	text := w.text()
	for _, want := range []string{
		"standing not held   leader none   agreed no", "agreement waits: unreachable", "waits: voters are missing", "cure: start them",
		"no rates: there are none", "MEMBERS 2, 1 unreachable", "up !", "unreachable for 1",
	} {
		require.Contains(t, text, want)
	}
}

// One poll is under way at a time, and each pause has one poll, however often the pace is changed.
func TestKeysPauseAndPace(t *testing.T) {
	w := newWorld()
	first := w.Init()
	require.Nil(t, w.poll(), "a poll is under way")
	_, pause := w.Update(first())
	require.NotNil(t, pause)
	old := pauseEnded{w.ticket}
	require.NotNil(t, w.press("+"))
	require.Equal(t, time.Second, w.every)
	_, cmd := w.Update(old)
	require.Nil(t, cmd, "the pause that was overtaken")
	_, cmd = w.Update(pauseEnded{w.ticket})
	require.NotNil(t, cmd)
	w.Update(cmd())
	w.press("space")
	require.Contains(t, w.text(), "paused")
	_, cmd = w.Update(pauseEnded{w.ticket})
	require.Nil(t, cmd)
	require.NotNil(t, w.press("p"), "it asks at once")
	for range 20 {
		w.press("+")
	}
	require.Equal(t, EveryLeast, w.every)
	for range 20 {
		w.press("-")
	}
	require.Equal(t, MaxEvery, w.every)
	for _, key := range []string{"q", "ctrl+c"} {
		require.Equal(t, tea.QuitMsg{}, w.press(key)())
	}
	w.press("?")
	require.Contains(t, w.text(), "members, kinds, rates, moves, decisions")
}

func TestPartIsScrolledWithinItsBounds(t *testing.T) {
	w := newWorld()
	w.node.members.Members = nil
	for i := range 100 {
		w.node.members.Members = append(w.node.members.Members, management.Member{Node: fmt.Sprintf("n%d:7946#1", i), Status: "up", Age: i + 1})
	}
	w.look(0)
	w.press("tab", "down", "down")
	require.Contains(t, w.text(), "MEMBERS 100, 3 to ")
	require.NotContains(t, w.text(), "n1:7946")
	w.press("end")
	require.Contains(t, w.text(), " to 100")
	require.Contains(t, w.text(), "n99:7946")
	w.press("up")
	require.Contains(t, w.text(), " to 99")
	w.press("5")
	require.Contains(t, w.text(), "DECISIONS")
	require.NotContains(t, w.text(), "MEMBERS")
	w.press("0")
	require.Contains(t, w.text(), "MEMBERS 100, ")
}

func TestPastIsBounded(t *testing.T) {
	w := newWorld()
	for i := range 400 {
		w.node.sent += i
		w.node.shards[0].Home = []string{one, two}[i%2]
		w.node.members.Members = []management.Member{{Node: fmt.Sprintf("n%d:1#1", i), Status: "up"}}
		w.look(time.Second)
	}
	require.Equal(t, 399, w.history.moved)
	require.Len(t, w.history.moves, movesKept)
	require.Len(t, w.history.gone, goneKept)
	require.Len(t, w.history.rates["sent to entities"], ratesKept)
	w.node.sent = 0 // It was started again.
	w.look(time.Second)
	w.look(time.Second)
	require.Equal(t, 399, w.history.moved, "nothing moved at last")
	require.Contains(t, w.text(), "sent to entities")
}

// Whatever the size, whatever a node says and whatever is pressed, the screen fits.
func TestScreenFitsEveryTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		text := rapid.StringN(0, 40, 80)
		w.node.members.Blockers, w.node.members.Converged = text.Draw(t, "blockers"), rapid.Bool().Draw(t, "converged")
		for range rapid.IntRange(0, 60).Draw(t, "members") {
			w.node.members.Members = append(w.node.members.Members, management.Member{
				Node: text.Draw(t, "node"), Status: text.Draw(t, "status"), Zone: text.Draw(t, "zone"), DownedWhy: text.Draw(t, "why"), UnreachableFor: []string{one},
			})
		}
		width, height := rapid.IntRange(1, 130).Draw(t, "width"), rapid.IntRange(1, 60).Draw(t, "height")
		w.Update(tea.WindowSizeMsg{Width: width, Height: height})
		for range rapid.IntRange(0, 3).Draw(t, "looks") {
			w.node.sent += 10
			if rapid.Bool().Draw(t, "down") {
				w.node.down = errors.New(text.Draw(t, "error"))
			}
			w.look(time.Second)
		}
		for _, key := range rapid.SliceOfN(rapid.SampledFrom([]string{"tab", "down", "end", "up", "?", "1", "4", "space", "+"}), 0, 6).Draw(t, "keys") {
			w.press(key)
		}
		lines := w.screen()
		if len(lines) > height {
			t.Fatalf("%d lines on %d", len(lines), height)
		}
		for _, line := range lines {
			if wide := ansi.StringWidth(line); wide > width {
				t.Fatalf("%d columns on %d: %q", wide, width, line)
			}
			if strings.ContainsAny(ansi.Strip(line), "\x1b\r\n\a\b") {
				t.Fatalf("control characters: %q", line)
			}
		}
	})
}

func TestPlainTextHasNoColoursAndFits(t *testing.T) {
	f := newFake()
	f.members.Blockers = strings.Repeat("long ", 60)
	f.members.Converged = false
	for i := range 50 {
		f.members.Members = append(f.members.Members, management.Member{Node: fmt.Sprintf("n%d:7946#1", i), Status: "joining"})
	}
	s, err := Gather(f, func() time.Time { return start })
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, Print(&b, s, 80))
	require.NotContains(t, b.String(), "\x1b")
	require.Contains(t, b.String(), "MEMBERS 52, 32 more")
	for line := range strings.Lines(b.String()) {
		require.LessOrEqual(t, ansi.StringWidth(strings.TrimSuffix(line, "\n")), 80)
		require.NotRegexp(t, ` \n$`, line)
	}
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/quorate/quorate/membership/membershipsim/outcomes"
)

// The tables of the page. Two have the figures that tests of package downing log, three are about
// cases in which a fault falls into an edit of the members, one repeats a column of the blocks of
// the page.

// tables returns the functions that make the tables, by name.
func tables() map[string]func(*renderer) (string, error) {
	return map[string]func(*renderer) (string, error){
		"settled":  (*renderer).settled,
		"turned":   (*renderer).turned,
		"moments":  (*renderer).moments,
		"worst":    (*renderer).worst,
		"needless": (*renderer).needless,
	}
}

// markdown returns a table of a page.
func markdown(head []string, rows [][]string) string {
	var text strings.Builder
	line := func(cells []string) { text.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head)
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = "---"
	}
	line(rule)
	for _, r := range rows {
		line(r)
	}
	return text.String()
}

// logged runs a test of package downing, and returns what it logs, with the names of its parts.
func (r *renderer) logged(test string) (string, error) {
	cmd := exec.CommandContext(r.ctx, "go", "test", "./downing", "-run", "^"+test+"$", "-v")
	cmd.Dir = r.root
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, &out)
	}
	return out.String(), nil
}

// settled is how often nobody goes on after a split of settled members.
func (r *renderer) settled() (string, error) {
	out, err := r.logged("TestEverySplitOfASettledCluster")
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`=== RUN +\S+/(\S+)\n.*: nobody survives (\d+ of \d+) splits into 2 sides and (\d+ of \d+) into 3`).FindAllStringSubmatch(out, -1)
	by := map[string][]string{}
	for _, f := range found {
		by[f[1]] = f[2:]
	}
	var table [][]string
	for _, row := range []struct{ name, test string }{
		{"keep-majority", "keep-majority"},
		{"static-quorum", "static-quorum"},
		{"static-quorum, role", "static-quorum,_role"},
		{"keep-oldest, without down-if-alone", "keep-oldest"},
		{"keep-oldest, with down-if-alone", "keep-oldest,_down-if-alone"},
		{"down-all", "down-all"},
	} {
		if by[row.test] == nil {
			return "", fmt.Errorf("the test says nothing of %s:\n%s", row.test, out)
		}
		table = append(table, append([]string{row.name}, by[row.test]...))
	}
	return markdown([]string{"strategy", "two sides", "three sides"}, table), nil
}

// turned is of how many splits into two sides an edit makes another side the winner, and in how
// many nobody goes on while the side of the leader alone has it.
func (r *renderer) turned() (string, error) {
	out, err := r.logged("TestNeverTwoSurvivorsWhileAMemberJoinsOrExits")
	if err != nil {
		return "", err
	}
	const tally = `: of (\d+) splits the edit turns (\d+); nobody [^:]*: (\d+); by the rule of Akka: (\d+), and (\d+) `
	found := regexp.MustCompile(`/nodes=(\d)\n.*leaving`+tally+`.*\n.*joining`+tally).FindAllStringSubmatch(out, -1)
	var table [][]string
	for _, what := range []struct {
		name  string
		first int // Which group of the pattern is the first about it.
	}{{"a node joins", 7}, {"a member leaves", 2}} {
		for _, f := range found {
			g := f[what.first:]
			table = append(table, []string{f[1], what.name, g[1] + " of " + g[0], g[2], g[3], g[4]})
		}
	}
	if len(table) != 10 {
		return "", fmt.Errorf("the test logs %d tallies, not those of 3 to 7 nodes:\n%s", len(table), out)
	}
	return markdown([]string{
		"members, the newcomer included", "edit", "splits that it turns", "nobody, while the side of the leader alone has it",
		"so by the rule of Akka", "and for as long as the member is known to join or leave",
	}, table), nil
}

// edit is a family of cases in which a fault falls into an edit of the members.
type edit struct{ family, name string }

// counts are the cases of one moment of an edit.
type counts struct{ nobody, of int }

func (c counts) String() string { return fmt.Sprintf("%d of %d", c.nobody, c.of) }

// atMoments returns the cases of an edit of n members by moment: splits into two sides, and
// crashes.
func (r *renderer) atMoments(n int, family string) (map[time.Duration]counts, error) {
	s, err := outcomes.BuiltIn(outcomes.DefaultConfig())
	if err != nil {
		return nil, err
	}
	t, err := outcomes.Run(r.ctx, outcomes.Options{Nodes: n, Strategy: s, Families: []string{family}})
	if err != nil {
		return nil, err
	}
	by := map[time.Duration]counts{}
	for _, o := range t.Outcomes {
		if o.Sides > 2 {
			continue
		}
		c := by[o.Lead]
		c.of++
		if o.Needless {
			c.nobody++
		}
		by[o.Lead] = c
	}
	return by, nil
}

// moments is after how many splits of five members into two sides nobody goes on, by how long
// before the cut an edit began.
func (r *renderer) moments() (string, error) {
	leads := outcomes.Leads()
	head := []string{"edit"}
	for _, l := range leads {
		head = append(head, fmt.Sprintf("%d ms", l.Milliseconds()))
	}
	var table [][]string
	for _, e := range []edit{{"joining", "a node joins"}, {"leaving", "a member leaves"}, {"downing", "a member is downed by command"}} {
		row := []string{e.name}
		by := map[time.Duration]counts{}
		if long := r.quick && e.family != "joining"; !long {
			var err error
			if by, err = r.atMoments(5, e.family); err != nil {
				return "", err
			}
		}
		for i, l := range leads {
			switch c, ok := by[l]; {
			case !ok && i == 0:
				row = append(row, unknown+" of "+unknown)
			case !ok:
				row = append(row, unknown)
			case i == 0:
				row = append(row, c.String())
			default:
				row = append(row, fmt.Sprint(c.nobody))
			}
		}
		table = append(table, row)
	}
	return markdown(head, table), nil
}

// worst is the same in the worst of the moments for other numbers of members.
func (r *renderer) worst() (string, error) {
	var table [][]string
	for n := 3; n <= outcomes.MaxNodes; n++ {
		row := []string{fmt.Sprint(n)}
		for _, family := range []string{"joining", "leaving", "crash-joining"} {
			if r.quick && n > 4 {
				row = append(row, unknown+" of "+unknown)
				continue
			}
			by, err := r.atMoments(n, family)
			if err != nil {
				return "", err
			}
			var most counts
			for _, c := range by {
				if c.nobody >= most.nobody {
					most = c
				}
			}
			row = append(row, most.String())
		}
		table = append(table, row)
	}
	return markdown([]string{"members", "splits while a node joins", "splits while a member leaves", "crashes while a node joins"}, table), nil
}

// needless has the needless cases of each strategy that has a block on the page.
func (r *renderer) needless() (string, error) {
	families := []string{"split-2", "split-3", "leader-crash", "leaving", "downing", "joining", "crash", "crash-joining"}
	head := append([]string{"strategy"}, families...)
	var table [][]string
	for _, m := range consolePattern.FindAllStringSubmatch(r.page, -1) {
		by := rows(m[2])
		name, _, _ := strings.Cut(m[2], "\n")
		if i := strings.IndexByte(name, '('); i > 0 && strings.Contains(m[1], "-settings") {
			name = "`" + name[:i-1] + "`: `" + strings.TrimSuffix(name[i+1:], ")") + "`"
		} else {
			name, _, _ = strings.Cut(name, " ")
			name = "`" + name + "`"
		}
		row := []string{name}
		for _, family := range families {
			f := strings.Fields(by[family])
			if len(f) == 0 {
				return "", fmt.Errorf("the block of %q has no row %s", m[1], family)
			}
			row = append(row, f[7]+" of "+f[1])
		}
		table = append(table, row)
	}
	return markdown(head, table), nil
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery/consul"
	"github.com/quorate/quorate/discovery/dns"
	"github.com/quorate/quorate/discovery/etcd"
	"github.com/quorate/quorate/discovery/file"
	"github.com/quorate/quorate/discovery/kubernetes"
	"github.com/quorate/quorate/discovery/multicast"
	etcdleases "github.com/quorate/quorate/downing/lease/etcd"
	fileleases "github.com/quorate/quorate/downing/lease/file"
	kubernetesleases "github.com/quorate/quorate/downing/lease/kubernetes"
)

// One mistake is one fault. Each key of the reference gets, in a file that is right otherwise, a mistake of each sort
// that its type allows ([mistakes]); the fault must name the file, the line and the key, and say why.

// mistake is a wrong value.
type mistake struct {
	sort  string
	value string   // As it is written.
	at    string   // What the key of the fault has behind that of the setting.
	why   []string // The reason has one of these words.
	free  bool     // Where the value has a meaning, the file is right.
}

// mistakes returns mistakes of a setting, those of one sort one after another.
func mistakes(s config.Setting) []mistake {
	all := misfits(s.Type)
	add := func(sort, at string, free bool, values ...string) {
		for _, v := range values {
			all = append(all, mistake{sort: sort, value: v, at: at, free: free})
		}
	}
	if s.Type != config.TypeGroup && s.Type != config.TypeMap && s.Type != config.TypeAny {
		all = append(all, mistake{sort: "nothing", value: "", why: []string{"has no value"}})
	}
	switch s.Type {
	case config.TypeText:
		add("word", "", len(s.OneOf)+len(s.Known) == 0, "nonsense", strings.Repeat("x", 5000))
		add("empty", "", !s.Required, `""`)
	case config.TypeGroup:
		all = append(all, mistake{sort: "neighbour", value: "1", at: ".nonsense", why: []string{"unknown"}})
	case config.TypeList:
		add("item", "[0]", false, "[null]")
		if s.Item == config.TypeText {
			all = append(all, mistake{sort: "item of another type", value: "[1]", at: "[0]", why: []string{"must be text, not the number 1"}})
			add("empty item", "", true, `[""]`)
		}
	case config.TypeMap:
		if s.Item == config.TypeWhole {
			add("entry", ".x", false, "{x: -1}", "{x: text}", "{x: 1.5}", "{x: 0}")
		}
	default:
	}
	return append(all, outside(s)...)
}

// misfits returns values of other types.
func misfits(t config.Type) []mistake {
	const list, group = "[{a: b}]", "{a: {b: c}}"
	number := mistake{sort: "type", value: "5", why: []string{"the number 5"}}
	text := mistake{sort: "type", value: "text", why: []string{`"text"`}}
	truth := mistake{sort: "type", value: "true", why: []string{"the truth value true"}}
	several := []mistake{{sort: "type", value: list, why: []string{"a list"}}, {sort: "type", value: group, why: []string{"a map"}}}
	octal := mistake{sort: "octal", value: "0100", why: []string{"decimal"}}
	switch t {
	case config.TypeText:
		return append(several, number, truth, mistake{sort: "type", value: "1.10", why: []string{"the number 1.1", "in quotes"}})
	case config.TypeBool:
		return append(several, number, text, mistake{sort: "type", value: "yes", why: []string{`the text "yes"`}})
	case config.TypeWhole:
		return append(several, text, truth, octal,
			mistake{sort: "quoted", value: `"5"`, why: []string{"take the quotes away"}},
			mistake{sort: "part", value: "1.5", why: []string{"the number 1.5"}}, mistake{sort: "part", value: "1e3", why: []string{"write 1000"}},
			mistake{sort: "vast", value: "99999999999999999999", why: []string{"00000000 is out of range"}},
		)
	case config.TypeNumber:
		return append(several, text, truth, octal, mistake{sort: "quoted", value: `"5"`, why: []string{"take the quotes away"}},
			mistake{sort: "vast", value: ".inf", why: []string{"not a finite number"}}, mistake{sort: "vast", value: ".nan", why: []string{"not a finite number"}})
	case config.TypeDuration:
		return append(several, number, text, truth, mistake{sort: "day", value: "1d", why: []string{"one day is 24h"}},
			mistake{sort: "quoted", value: `"5"`, why: []string{"write a number and a unit"}},
			mistake{sort: "vast", value: "99999999h", why: []string{"is too large"}}, mistake{sort: "octal", value: "0100", why: []string{"decimal"}})
	case config.TypeList:
		return []mistake{number, text, several[1]}
	case config.TypeTexts:
		return []mistake{number, several[1]}
	case config.TypeMap, config.TypeGroup:
		return []mistake{number, text, several[0]}
	default:
		return nil
	}
}

// outside returns numbers outside of the range of a setting, and zero and numbers at the ends of the type, which may be
// allowed.
func outside(s config.Setting) []mistake {
	r, err := field.ParseRange(s.Range)
	if err != nil || s.Range == "" || s.Type == config.TypeMap || s.Type == config.TypeList {
		return nil
	}
	write := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	step := 1.0
	most := []string{"9223372036854775807"}
	switch s.Type {
	case config.TypeDuration:
		write = func(x float64) string { return strconv.FormatInt(int64(x), 10) + "ns" }
		most = []string{"2562000h"}
	case config.TypeNumber:
		step = 1.0 / 1024
	default:
	}
	within := func(x float64) bool {
		return (r.Min.Text == "" || x > r.Min.Value || x == r.Min.Value && !r.Min.Open) && (r.Max.Text == "" || x < r.Max.Value || x == r.Max.Value && !r.Max.Open)
	}
	var all []mistake
	add := func(sort, value string, x float64, b field.Bound) {
		why := []string{b.Text, "positive", "negative", "neither", "is below", "a quarter of shutdown.deadline"}
		if d, err := time.ParseDuration(b.Text); err == nil {
			why = append(why, strings.TrimSuffix(d.String(), "m0s"), "not above 0")
		}
		if within(x) {
			why = []string{""}
		}
		all = append(all, mistake{sort: sort, value: value, free: within(x), why: why})
	}
	add("negative", write(-5e8), -5e8, r.Min)
	add("zero", write(0), 0, r.Min)
	all[len(all)-1].free = within(0) || s.Path[0] == "plugins" // Of plugins zero is the default.
	add("most", most[0], 9e18, r.Max)
	if r.Min.Text != "" {
		add("below", write(r.Min.Value-step), r.Min.Value-step, r.Min)
	}
	if r.Max.Text != "" {
		above := r.Max.Value + max(step, math.Trunc(r.Max.Value/1e9)) // More than floating-point numbers of this size lie apart.
		add("above", write(above), above, r.Max)
	}
	return all
}

// whole returns a file that is right, in which each key of the reference means something.
func (w *world) whole() *tree {
	t := &tree{}
	set := func(key, value string) { t.set(strings.Split(key, "."), value) }
	set("cluster.name", "bank")
	set("node.address", w.addresses[0])
	set("node.data-dir", w.path("data"))
	set("membership.seed-nodes", "["+w.addresses[0]+"]")
	set("membership.discovery.methods", "[static]")
	w.secure(t, "transport")
	set("downing.strategy", "lease-majority")
	set("downing.lease-majority.store", "file")
	set("downing.lease-majority.lease-name", "bank")
	set("lease-file.directory", w.path("leases"))
	set("sharding.leases.store", "file")
	set("ddata.durable", "[kept]")
	set("ddata.expire.[].prefix", "a")
	set("ddata.expire.[].after", "1m")
	set("ddata.groups.[].prefix", "b")
	set("ddata.groups.[].durable", "true")
	set("gateway.address", w.addresses[1])
	set("gateway.kinds", "[account]")
	set("gateway.token-file", w.path("tokens"))
	set("management.address", w.addresses[2])
	set("management.health.address", w.addresses[3])
	set("management.operators.token-file", w.path("tokens"))
	set("telemetry.metrics", "prometheus")
	set("plugins.x.policy", "downing")
	set("plugins.x.path", w.path("program"))
	set("plugins.x.unpinned", "true")
	return t
}

// secure names the files of a certificate in a section.
func (w *world) secure(t *tree, section string) {
	for _, file := range []string{"certificate", "key", "authorities"} {
		t.set([]string{section, "tls", file}, w.path("good", file+".pem"))
	}
}

// place returns the path of a setting in the file of [world.whole].
func place(s config.Setting) []string {
	path := slices.Clone(s.Path)
	for i := range path {
		if path[i] == "*" {
			path[i] = "x"
		}
	}
	return path
}

// internal is the name of a package before a reason, which the user of a file does not know.
var internal = regexp.MustCompile(`(^|[:;] )[a-z]+: `)

// check holds the faults of a file to those of one mistake.
func (m mistake) check(path string, line int, key string, faults config.Errors) error {
	if m.free && len(faults) == 0 {
		return nil
	}
	names := strings.Split(key, ".")
	related := func(f *config.Error) bool { // What is said of another key, whose value does not fit this one.
		return m.free && (strings.Contains(f.Reason, names[len(names)-1]) || strings.HasPrefix(f.Key, key+"["))
	}
	if !slices.ContainsFunc(faults, func(f *config.Error) bool { return !related(f) }) {
		return nil
	}
	if len(faults) != 1 {
		return fmt.Errorf("%d faults", len(faults))
	}
	f := faults[0]
	switch {
	case f.File != path || f.Line != line:
		return fmt.Errorf("want line %d of %s", line, path)
	case f.Key != key+m.at:
		return fmt.Errorf("want the key %s", key+m.at)
	case internal.MatchString(f.Reason):
		return fmt.Errorf("the reason names a package")
	case len(m.why) > 0 && !slices.ContainsFunc(m.why, func(why string) bool { return strings.Contains(f.Reason, why) }):
		return fmt.Errorf("want one of the words %q", m.why)
	}
	return nil
}

// ownSection is a section whose name is that of a method of discovery or of a store of leases.
type ownSection struct {
	name     string
	defaults any
	choose   map[string]string // What has it chosen, and what it needs.
}

// ownSections returns the sections of all methods and stores.
func (w *world) ownSections() []ownSection {
	method := func(name string, defaults any, needs ...string) ownSection {
		s := ownSection{"discovery-" + name, defaults, map[string]string{"membership.discovery.methods": "[static, " + name + "]"}}
		for i := 0; i < len(needs); i += 2 {
			s.choose[s.name+"."+needs[i]] = needs[i+1]
		}
		return s
	}
	store := func(name string, defaults any, needs ...string) ownSection {
		s := method(name, defaults)
		s.name, s.choose = "lease-"+name, map[string]string{"downing.lease-majority.store": name}
		for i := 0; i < len(needs); i += 2 {
			s.choose[s.name+"."+needs[i]] = needs[i+1]
		}
		return s
	}
	const etcdURL, kubernetesURL = `["http://127.0.0.1:2379"]`, `"https://127.0.0.1:6443"`
	return []ownSection{
		method(dns.Method, dns.Default()),
		method(file.Method, file.Default(), "path", w.path("plain")),
		method(kubernetes.Method, kubernetes.Default(), "server", kubernetesURL, "namespace", "bank", "token-file", w.path("tokens")),
		method(consul.Method, consul.Default()),
		method(etcd.Method, etcd.Default(), "endpoints", etcdURL),
		method(multicast.Method, multicast.Default(), "service", "bank"),
		store(fileleases.Kind, fileleases.Default()),
		store(etcdleases.Kind, etcdleases.Default(), "endpoints", etcdURL),
		store(kubernetesleases.Kind, kubernetesleases.Default(), "server", kubernetesURL, "namespace", "bank", "token-file", w.path("tokens")),
	}
}

// A mistake in the value of any key, of whatever sort, is one fault, in the same words by a check and by a start.
func TestAMistakeIsOneFault(t *testing.T) {
	w := newWorld(t)
	require.Empty(t, said(t, w.whole().write(t)), "the file without a mistake")
	settings, err := config.Settings(cluster.Default())
	require.NoError(t, err)
	r := &run{w: w, dir: t.TempDir(), seen: map[string]int{}}
	r.all(t, settings, w.whole)
	require.Greater(t, len(r.seen), 15, "sorts of mistakes: %v", r.seen)
}

// So is one in the section of a method of discovery, or of a store of leases.
func TestAMistakeInASectionOfItsOwnIsOneFault(t *testing.T) {
	w := newWorld(t)
	sections := w.ownSections()
	require.Equal(t, len(methods())+len(stores())+1, len(sections), "ownSections() in mistakes_test.go has a row for each method and store, and one for files, which every node has: add yours") //nolint:testifylint // The sections would fill the screen.
	r := &run{w: w, dir: t.TempDir(), seen: map[string]int{}}
	for _, of := range sections {
		settings, err := config.Settings(of.defaults)
		require.NoError(t, err)
		for i := range settings {
			settings[i].Path = append([]string{of.name}, settings[i].Path...)
		}
		whole := func() *tree {
			t := w.whole()
			for key, value := range of.choose {
				t.set(strings.Split(key, "."), value)
			}
			return t
		}
		require.Empty(t, checked(t, whole().writeIn(t, r.dir)), of.name)
		for turn := range 4 { // There are few keys.
			r.turn = turn
			r.all(t, append(settings, config.Setting{Path: []string{of.name}, Type: config.TypeGroup}), whole)
		}
	}
	require.Greater(t, len(r.seen), 15, "sorts of mistakes: %v", r.seen)
}

// run makes mistakes in files.
type run struct {
	w    *world
	dir  string
	turn int
	seen map[string]int // How many of each sort were made.
}

// all makes a mistake of each sort in each of some settings, in a file that is right otherwise.
func (r *run) all(t *testing.T, settings []config.Setting, whole func() *tree) {
	t.Helper()
	for i, s := range settings {
		bySort := map[string][]mistake{}
		for _, m := range mistakes(s) {
			bySort[m.sort] = append(bySort[m.sort], m)
		}
		for _, sort := range slices.Sorted(maps.Keys(bySort)) {
			all := bySort[sort]
			m := all[(i+r.turn)%len(all)] // The keys take turns.
			file, at := whole(), place(s)
			if at[0] == "gateway" || at[0] == "management" { // Elsewhere their files would only take time.
				r.w.secure(file, at[0])
			}
			key := strings.ReplaceAll(strings.Join(at, "."), ".[]", "[0]")
			target := file.at(at)
			if sort == "neighbour" {
				target = file.at(append(at, "nonsense"))
				file.set(append(at, "nonsense"), m.value)
			} else {
				file.set(at, m.value)
			}
			path := file.writeIn(t, r.dir)
			ask := checked
			if r.seen[sort]%4 == 0 { // Asking all three for each mistake takes three times as long.
				ask = refused
			}
			faults := ask(t, path)
			if err := m.check(path, target.line, key, faults); err != nil {
				t.Errorf("%s of %s, %.40s: %v; found\n%s", sort, key, m.value, err, strings.ReplaceAll(faults.Error(), r.w.dir, ""))
			}
			r.seen[sort]++
		}
	}
}

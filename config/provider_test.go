// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/config"
)

// Layers of providers: what they are laid over, that they are held to the rules of files, and what becomes of those
// that answer nonsense, late or not at all. Watching them is at the end.

// source is a provider that gives what its functions return.
type source struct {
	read  func() (map[string]any, error)
	bytes func() ([]byte, error)
}

func (s source) Read() (map[string]any, error) { return s.read() }
func (s source) ReadBytes() ([]byte, error)    { return s.bytes() }

// gives is a provider of values.
func gives(tree map[string]any) koanf.Provider {
	return source{read: func() (map[string]any, error) { return tree, nil }}
}

// yamlParser is a parser of koanf.
type yamlParser struct{}

func (yamlParser) Marshal(map[string]any) ([]byte, error) { return nil, errors.ErrUnsupported }
func (yamlParser) Unmarshal(b []byte) (tree map[string]any, err error) {
	return tree, yaml.Unmarshal(b, &tree)
}

// says is a provider of YAML text.
func says(name, text string) config.Provider {
	return config.Provider{Name: name, Source: source{bytes: func() ([]byte, error) { return []byte(text), nil }}, Parser: yamlParser{}}
}

func provided(providers ...config.Provider) (*config.File, error) {
	return config.Loader{Providers: providers}.Load()
}

type settingsOfProviders struct {
	Name  string        `koanf:"name"`
	Count int           `koanf:"count"`
	Part  float64       `koanf:"part"`
	On    bool          `koanf:"on"`
	After time.Duration `koanf:"after"`
	Roles []string      `koanf:"roles"`
	Port  map[string]struct {
		Number uint16 `koanf:"number"`
	} `koanf:"port"`
}

// Later providers lie over earlier ones, all of them over files, and the environment over all.
func TestProvidersLieOverFilesAndUnderTheEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("a: {name: file, count: 1, part: 1, roles: [file]}\n"), 0o600))
	file, err := config.Loader{
		Environ: []string{"QUORATE_A__PART=4"},
		Providers: []config.Provider{
			{Name: "flags", Source: gives(map[string]any{"a": map[string]any{"name": "first", "count": "2", "roles": "x, y"}})},
			says("store", "a: {name: second, part: 3}\n"),
		},
	}.Load(path)
	require.NoError(t, err)
	var s struct {
		A settingsOfProviders `koanf:"a"`
	}
	require.NoError(t, file.Decode("", &s))
	require.Equal(t, settingsOfProviders{Name: "second", Count: 2, Part: 4, Roles: []string{"x", "y"}}, s.A)
	require.Equal(t, []string{path, "flags", "store"}, file.Paths())
	require.Equal(t, filepath.Dir(path), file.Dir())
}

// Values of a program have other types than those of a file.
func TestValuesOfAProgram(t *testing.T) {
	port := uint16(7)
	file, err := provided(config.Provider{Name: "program", Source: gives(map[string]any{
		"name": netip.MustParseAddr("127.0.0.1"), "count": int8(-3), "part": float32(0.5), "on": true,
		"after": 90 * time.Second, "roles": [2]any{"a", "b"}, "port": map[any]any{"one": map[string]*uint16{"number": &port}},
	})})
	require.NoError(t, err)
	var s settingsOfProviders
	require.NoError(t, file.Decode("", &s))
	require.Equal(t, "127.0.0.1", s.Name)
	require.Equal(t, -3, s.Count)
	require.InDelta(t, 0.5, s.Part, 0)
	require.True(t, s.On)
	require.Equal(t, 90*time.Second, s.After)
	require.Equal(t, []string{"a", "b"}, s.Roles)
	require.EqualValues(t, 7, s.Port["one"].Number)
}

// What no setting is, or not of its type, is a fault that names the provider and the key.
func TestProvidersAreHeldToTheRulesOfFiles(t *testing.T) {
	deep := map[string]any{}
	for at, n := deep, 0; n < 40; n++ {
		below := map[string]any{}
		at["x"] = below
		at = below
	}
	many := make([]int, 20_000)
	for name, c := range map[string]struct {
		provider config.Provider
		want     string
	}{
		"unknown key":      {says("store", "nam: x\n"), `store: nam: unknown section; did you mean "name"?`},
		"another type":     {says("store", "count: x\n"), `store: count: `},
		"text as text":     {says("store", `count: "3"`), `store: count: `},
		"no number":        {config.Provider{Name: "flags", Source: gives(map[string]any{"count": "three"})}, `flags: count: `},
		"includes":         {says("store", "include: [a.yaml]\n"), "store: include: only a file can include files"},
		"no syntax":        {says("store", "{"), "store: "},
		"empty":            {says("store", ""), "store: is empty"},
		"no UTF-8":         {says("store", "name: \xff"), "store: is not UTF-8 text"},
		"huge":             {says("store", "name: "+strings.Repeat("x", 1<<20)), "store: is larger than 1048576 bytes"},
		"deep":             {config.Provider{Name: "flags", Source: gives(deep)}, "flags: x: is nested deeper than 32 levels"},
		"many":             {config.Provider{Name: "flags", Source: gives(map[string]any{"roles": many})}, "flags: more than 10000 keys and list items are given"},
		"a function":       {config.Provider{Name: "flags", Source: gives(map[string]any{"name": func() {}})}, "flags: name: is a func(), of which no setting can be"},
		"no number at all": {config.Provider{Name: "flags", Source: gives(map[string]any{"part": math.NaN()})}, "flags: part: is not a number"},
		"numbers as keys":  {config.Provider{Name: "flags", Source: gives(map[string]any{"port": map[int]any{1: 2}})}, "flags: port: has keys that are no text"},
		"an odd key":       {config.Provider{Name: "flags", Source: gives(map[string]any{"a\x1fb": 1})}, `flags: the key "a\x1fb"`},
		"odd text":         {config.Provider{Name: "flags", Source: gives(map[string]any{"name": "\xff"})}, "flags: name: is not UTF-8 text"},
		"text for a group": {config.Provider{Name: "flags", Source: gives(map[string]any{"port": "x"})}, "flags: port: is a group of settings, and cannot be one text"},
		"an error":         {config.Provider{Name: "store", Source: source{read: func() (map[string]any, error) { return nil, errors.New("no\nroute") }}}, "store: no route"},
		"a panic":          {config.Provider{Name: "store", Source: source{}}, "store: the provider panicked: "},
		"no name":          {config.Provider{Source: gives(nil)}, "provider 1 has no name or no source"},
		"no source":        {config.Koanf("store", nil), "store: provider 1 has no name or no source"},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := provided(c.provider)
			if err == nil {
				err = file.Decode("", new(settingsOfProviders))
			}
			var faults config.Errors
			require.ErrorAs(t, err, &faults)
			require.Len(t, faults, 1, "one mistake, one fault")
			require.Contains(t, err.Error(), c.want)
		})
	}
	_, err := provided(says("one", "name: x"), says("one", "name: y"))
	require.ErrorContains(t, err, "one: two providers have this name")
	file, err := provided(config.Provider{Name: "flags", Source: gives(nil)})
	require.NoError(t, err, "no flag is set")
	require.NoError(t, file.Decode("", new(settingsOfProviders)))
	_, err = provided()
	require.ErrorContains(t, err, "no configuration file was given")
}

// An instance of koanf is one more provider, whose unknown keys are refused too.
func TestAnInstanceOfKoanf(t *testing.T) {
	k := koanf.New(".")
	require.NoError(t, k.Load(confmap.Provider(map[string]any{"node.name": "n", "node.count": 3, "other.x": 1}, "."), nil))
	file, err := provided(config.Koanf("mine", k.Cut("node")))
	require.NoError(t, err)
	var s settingsOfProviders
	require.NoError(t, file.Decode("", &s))
	require.Equal(t, settingsOfProviders{Name: "n", Count: 3}, s)
	require.NoError(t, k.Set("node.name", "later"))
	file, err = provided(config.Koanf("mine", k))
	require.NoError(t, err)
	require.ErrorContains(t, file.Decode("", &struct {
		Node settingsOfProviders `koanf:"node"`
	}{}), "mine: other: unknown section")
	_, err = config.Koanf("mine", k).Source.ReadBytes()
	require.Error(t, err)
}

// Stores of keys have no groups.
func TestStoresOfKeys(t *testing.T) {
	store := map[string]any{"bank/name": "n", "bank/port/one/number": "7", "bank/port/": "", "bank/": ""}
	file, err := provided(config.Provider{Name: "store", Source: config.Flat(gives(store), "bank/", "/")})
	require.NoError(t, err)
	var s settingsOfProviders
	require.NoError(t, file.Decode("", &s))
	require.Equal(t, "n", s.Name)
	require.EqualValues(t, 7, s.Port["one"].Number)
	file, err = provided(config.Provider{Name: "store", Source: config.Document(gives(map[string]any{"a": "name: x", "b": []byte("n: 1")}), "a"), Parser: yamlParser{}})
	require.NoError(t, err)
	require.NoError(t, file.Decode("", &s))
	require.Equal(t, "x", s.Name)
	for want, p := range map[string]config.Provider{
		`store: the key "name" does not begin with "bank/"`:          {Source: config.Flat(gives(map[string]any{"name": "x"}), "bank/", "/")},
		`store: the key "a/b" has a value, or is below one that has`: {Source: config.Flat(gives(map[string]any{"a": "x", "a/b": "y"}), "", "/")},
		`store: the key "a" has a group already`:                     {Source: config.Flat(gives(map[string]any{"a": map[string]any{"c": 1}, "a-b": 1}), "", "-")},
		`store: there is no key "c"`:                                 {Source: config.Document(gives(store), "c"), Parser: yamlParser{}},
		`store: the key "c" has a int, and no text`:                  {Source: config.Document(gives(map[string]any{"c": 1}), "c"), Parser: yamlParser{}},
		`store: the text under the key "c" needs a parser`:           {Source: config.Document(gives(store), "c")},
		"store: unsupported operation":                               {Source: config.Flat(gives(store), "", "/"), Parser: yamlParser{}},
	} {
		p.Name = "store"
		_, err := provided(p)
		require.ErrorContains(t, err, want)
	}
}

// A provider gives the same as a file with the same text.
func TestAProviderIsReadAsAFileIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SampledFrom([]any{"x", "3", 3, -1, 0.5, true, nil, "5s", []any{"a"}, []any{1}, map[string]any{"one": map[string]any{"number": 9}}, map[string]any{"z": 1}})
		tree := map[string]any{}
		for _, key := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"name", "count", "part", "on", "after", "roles", "port", "nope"}), rapid.ID).Draw(t, "keys") {
			tree[key] = value.Draw(t, key)
		}
		if len(tree) == 0 {
			return
		}
		text, err := yaml.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		decode := func(file *config.File, err error) (s settingsOfProviders, faults string) {
			if err == nil {
				err = file.Decode("", &s)
			}
			if all, ok := errors.AsType[config.Errors](err); ok {
				for _, f := range all {
					faults += fmt.Sprintln(f.Key, f.Reason)
				}
			}
			return s, faults
		}
		ofFile, wrong := decode(config.Parse("store", text))
		ofProvider, wrongToo := decode(provided(says("store", string(text))))
		if wrong == "" && wrongToo != "" || wrong != "" && wrongToo == "" || strings.Count(wrong, "\n") != strings.Count(wrongToo, "\n") {
			t.Fatalf("of the file: %s\nof the provider: %s\n%s", wrong, wrongToo, text)
		}
		if wrong == "" && fmt.Sprint(ofFile) != fmt.Sprint(ofProvider) {
			t.Fatalf("%+v and %+v", ofFile, ofProvider)
		}
	})
}

// A provider that does not answer is waited for ten seconds, and is asked nothing before it has answered.
// Two who ask at the same time, such as a reload and somebody who looks, are answered one after the other.
func TestAProviderIsAskedOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, most := 0, 0
		s := source{read: func() (map[string]any, error) {
			asked++
			most = max(most, asked)
			<-time.After(time.Second)
			asked--
			return map[string]any{"name": "a"}, nil
		}}
		file, err := provided(config.Provider{Name: "store", Source: s})
		require.NoError(t, err)
		answers := make(chan error, 3)
		for range cap(answers) {
			go func() {
				_, err := file.Reload()
				answers <- err
			}()
		}
		for range cap(answers) {
			require.NoError(t, <-answers)
		}
		require.Equal(t, 1, most)
	})
}

func TestAProviderThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stands, asked := make(chan struct{}), 0
		s := source{read: func() (map[string]any, error) {
			if asked++; asked > 1 {
				<-stands
			}
			return map[string]any{"name": fmt.Sprint(asked)}, nil
		}}
		file, err := provided(config.Provider{Name: "store", Source: s})
		require.NoError(t, err)
		began := time.Now()
		_, err = file.Reload()
		require.ErrorContains(t, err, "store: did not answer within 10s")
		require.Equal(t, 10*time.Second, time.Since(began))
		_, err = file.Reload()
		require.ErrorContains(t, err, "store: has not answered the question before within 10s")
		close(stands)
		synctest.Wait()
		file, err = file.Reload()
		require.NoError(t, err)
		var now settingsOfProviders
		require.NoError(t, file.Decode("", &now))
		require.Equal(t, "3", now.Name)
	})
}

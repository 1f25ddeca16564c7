// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/tools/internal/akka"
	"github.com/quorate/quorate/tools/internal/command"
	"github.com/quorate/quorate/tools/internal/hocon"
)

// A check and a start say the same of settings that come in another way than by a file in which they are written: by a
// provider of koanf, by references to files and variables, and by a translation from Akka.

// storage is a provider of koanf: a text of a store, and its parser.
type storage string

func (s storage) ReadBytes() ([]byte, error)  { return []byte(s), nil }
func (storage) Read() (map[string]any, error) { return nil, errors.ErrUnsupported }

type yamlParser struct{}

func (yamlParser) Marshal(map[string]any) ([]byte, error) { return nil, errors.ErrUnsupported }
func (yamlParser) Unmarshal(b []byte) (tree map[string]any, err error) {
	return tree, yaml.Unmarshal(b, &tree)
}

// reasons returns faults without their places.
func reasons(faults config.Errors) []string {
	all := make([]string, 0, len(faults))
	for _, f := range faults {
		all = append(all, f.Key+": "+f.Reason+f.Nearest)
	}
	return all
}

// requireProvided demands that the settings of a file have the faults that they have there when a provider gives them.
func requireProvided(t *testing.T, path string, faults config.Errors) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	options := linked(cluster.WithProvider("store", storage(text), yamlParser{}))
	found := cluster.Check(cluster.Extensions{Options: options})
	if len(faults) == 0 {
		require.NoError(t, found, "of\n%s", text)
		require.NoError(t, start(t, options...), "of\n%s", text)
		return
	}
	require.EqualError(t, start(t, options...), found.Error(), "of\n%s", text)
	listed, _ := errors.AsType[config.Errors](found)
	require.ElementsMatch(t, reasons(faults), reasons(listed), "of\n%s", text)
	for _, f := range listed {
		require.Equal(t, "store", f.File)
	}
}

// requireReferred demands that a file has the faults that it has, at the same places, when texts of some keys are in
// files and variables to which it refers, and that no fault shows them.
func requireReferred(t *testing.T, file *tree, chosen []string, faults config.Errors) {
	t.Helper()
	dir, hidden := t.TempDir(), map[string]string{}
	for i, key := range chosen {
		path := strings.Split(strings.ReplaceAll(key, "*", "x"), ".")
		if !file.has(path) {
			continue
		}
		at := file.at(path)
		if strings.ContainsAny(at.value, `[]{}"'`) || strings.HasSuffix(key, ".sha256") {
			continue
		}
		hidden[key] = at.value
		if i%2 == 0 {
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(at.value+"\n"), 0o600))
			at.value = fmt.Sprintf("'${file:%s}'", filepath.Join(dir, fmt.Sprint(i)))
		} else {
			name := fmt.Sprint("REFERRED_", i)
			t.Setenv(name, at.value)
			at.value = fmt.Sprintf("'${env:%s}'", name)
		}
	}
	referring := said(t, file.writeIn(t, dir))
	require.ElementsMatch(t, keysOf(faults), keysOf(referring))
	for _, f := range referring {
		for key, value := range hidden {
			if f.Key == strings.ReplaceAll(key, "*", "x") && len(value) > 8 {
				require.NotContains(t, f.Reason, value, key)
			}
		}
	}
}

// keysOf returns the lines and keys of faults.
func keysOf(faults config.Errors) []string {
	all := make([]string, 0, len(faults))
	for _, f := range faults {
		all = append(all, fmt.Sprint(f.Line, " ", f.Key))
	}
	return all
}

func TestACheckAndAStartSayTheSameOfEachWay(t *testing.T) {
	w := newWorld(t)
	others := w.others()
	keys := slices.Sorted(maps.Keys(others))
	r := rand.New(rand.NewPCG(3, 4))
	faulty := 0
	for range 60 {
		r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		chosen := keys[:1+r.IntN(3)]
		file := w.drawn(func(key string) string { return others[key][r.IntN(len(others[key]))] }, chosen...)
		path := file.write(t)
		faults := said(t, path)
		faulty += min(1, len(faults))
		requireProvided(t, path, faults)
		requireReferred(t, file, chosen, faults)
	}
	require.Greater(t, faulty, 20)
	require.Less(t, faulty, 60)
}

// written are values for the keys of Akka whose counterparts here are no numbers, durations and truth values.
func (w *world) written() map[string][]string {
	host, port, _ := strings.Cut(w.addresses[0], ":")
	_, other, _ := strings.Cut(w.addresses[1], ":")
	seeds := fmt.Sprintf(`["akka://bank@%s", "akka://bank@127.0.0.1:%s"]`, w.addresses[0], other)
	return map[string][]string{
		"remote.artery.canonical.hostname":                                                     {host},
		"remote.artery.canonical.port":                                                         {port},
		"remote.artery.bind.hostname":                                                          {host, "0.0.0.0"},
		"remote.artery.bind.port":                                                              {port, other},
		"cluster.seed-nodes":                                                                   {seeds},
		"cluster.roles":                                                                        {"[a, b]", "[]"},
		"cluster.split-brain-resolver.active-strategy":                                         {"keep-majority", "keep-oldest", "static-quorum", "down-all", "lease-majority"},
		"cluster.split-brain-resolver.lease-majority.lease-implementation":                     {"akka.coordination.lease.kubernetes"},
		"cluster.distributed-data.durable.keys":                                                {`["kept-*"]`, "[]"},
		"management.http.hostname":                                                             {host},
		"management.http.port":                                                                 {other},
		"management.cluster.bootstrap.contact-point-discovery.discovery-method":                {"akka-dns", "kubernetes-api"},
		"discovery.method":                                                                     {"akka-dns", "kubernetes-api"},
		"cluster.shutdown-after-unsuccessful-join-seed-nodes":                                  {"off", "90s"},
		"cluster.sharding.passivate-idle-entity-after":                                         {"off", "3m"},
		"cluster.sharding.passivation.default-idle-strategy.idle-entity.timeout":               {"3m"},
		"cluster.sharding.least-shard-allocation-strategy.rebalance-relative-limit":            {"0.2", "1"},
		"cluster.failure-detector.threshold":                                                   {"8.5", "12"},
		"management.cluster.bootstrap.contact-point-discovery.contact-with-all-contact-points": {"on", "false"},
	}
}

// The file that a translation from Akka writes is one with which a node starts, but for what the translation says is
// missing: a check and a start refuse just those keys.
func TestATranslatedFileIsRefusedForWhatIsMissing(t *testing.T) {
	settings, err := config.Settings(cluster.Default())
	require.NoError(t, err)
	types := map[string]config.Type{}
	for _, s := range settings {
		types[s.Key()] = s.Type
	}
	w := newWorld(t)
	written, rules := w.written(), akka.Rules()
	r := rand.New(rand.NewPCG(5, 6))
	value := func(rule akka.Rule) string {
		if some := written[rule.From]; len(some) > 0 {
			return some[r.IntN(len(some))]
		}
		switch types[strings.TrimSuffix(rule.To, ".*")] {
		case config.TypeDuration:
			return []string{"1s", "5 s", "2m", "700ms", "1h", "5"}[r.IntN(6)]
		case config.TypeWhole, config.TypeNumber, config.TypeMap:
			return []string{"1", "3", "10", "1000", "65536"}[r.IntN(5)]
		case config.TypeBool:
			return []string{"on", "off"}[r.IntN(2)]
		default:
			require.Equal(t, config.TypeText, types[rule.To], rule.To)
			return "x"
		}
	}
	started, refused := 0, 0
	for n := range 200 {
		r.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
		var lines []string
		for i, rule := range rules {
			needed := n%2 == 0 && strings.HasPrefix(rule.From, "remote.artery.canonical.") || rule.From == "cluster.seed-nodes"
			if i < n%9 || needed {
				lines = append(lines, "akka."+strings.ReplaceAll(rule.From, "*", "back")+" = "+value(rule))
			}
		}
		dir := t.TempDir()
		conf, path := filepath.Join(dir, "application.conf"), filepath.Join(dir, "cluster.yaml")
		require.NoError(t, os.WriteFile(conf, []byte(strings.Join(lines, "\n")), 0o600))
		read, err := hocon.Read(conf, nil)
		require.NoError(t, err)
		made, err := translate(read)
		if err != nil || made.File == "" {
			continue // Refused, or there is nothing in it that has a counterpart.
		}
		require.NoError(t, os.WriteFile(path, []byte(made.File), 0o600))
		var missing []string
		for _, m := range made.Missing {
			missing = append(missing, m.Key)
		}
		found := cluster.Check(whole(command.Extensions{}), path)
		if found == nil {
			require.Empty(t, missing, "of\n%s", made.File)
			require.NoError(t, start(t, linked(cluster.WithFile(path))...), "of\n%s", made.File)
			started++
			continue
		}
		refused++
		require.EqualError(t, start(t, linked(cluster.WithFile(path))...), found.Error(), "of\n%s", made.File)
		faults, _ := errors.AsType[config.Errors](found)
		for _, f := range faults {
			require.Contains(t, missing, f.Key, "%v of\n%s", f, made.File)
		}
	}
	require.Positive(t, started)
	require.Positive(t, refused)
}

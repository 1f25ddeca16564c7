// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/plugins/host"
)

// What is known before a node binds an address is said by a check and by a start alike: of files in which some keys
// name what is not there ([world.others]), and of the faults of certificates and of plugins one by one.

// others returns, for each key that names a file, a directory, an address or a strategy, values other than that of
// [world.whole]; empty: the key is not there. Some are right too.
func (w *world) others() map[string][]string {
	_, port, _ := strings.Cut(w.addresses[0], ":")
	dirs := []string{w.path("plain"), w.path("plain", "below"), w.path("locked", "below"), w.path("new")}
	files := []string{w.path("none"), w.path("empty"), w.path("locked"), w.dir}
	all := map[string][]string{
		"node.address":                         {"127.0.0.1", "nowhere", w.addresses[1], "10.0.0.8:7946", "0.0.0.0:7946", ""},
		"node.data-dir":                        append(dirs, ""),
		"membership.seed-nodes":                {"[nowhere]", "[10.0.0.9:7946]", "['127.0.0.1:0']", ""},
		"membership.discovery.methods":         {"[dice]", "[x]", "[file]", "[static, file]", "[dns]", ""},
		"membership.discovery.join-decider":    {"dice", "x", "static"},
		"membership.failure-detector.strategy": {"dice", "x", "deadline", `""`},
		"transport.bind":                       {w.addresses[0], w.addresses[1], "nowhere", "0.0.0.0:" + port},
		"downing.strategy":                     {"dice", "keep-oldest", "least-shard", `""`},
		"downing.lease-majority.store":         {"dice", "", "x"},
		"sharding.allocation.strategy":         {"dice", "x", "external", `""`},
		"sharding.leases.store":                {"dice", "", "x"},
		"states.store":                         {"dice", "file"},
		"ddata.dir":                            dirs,
		"gateway.address":                      {w.addresses[0], w.addresses[2], "nowhere", "0.0.0.0:1", ""},
		"gateway.token-file":                   append(files, ""),
		"management.address":                   {w.addresses[0], "localhost:" + port, "nowhere", "0.0.0.0:1", ""},
		"management.health.address":            {w.addresses[2], "0.0.0.0:" + port, ":" + port, "localhost:" + port, "nowhere", ""},
		"management.operators.token-file":      append(files, ""),
		"management.operators.socket":          {w.path("socket"), w.path("none", "socket"), w.path("plain", "socket"), w.path("locked", "socket"), w.path("plain"), w.dir},
		"plugins.*.path":                       {w.path("none"), w.dir, w.path("plain"), ""},
		"plugins.*.sha256":                     {strings.Repeat("ab", 32), "ab"},
		"plugins.*.user":                       {"nobody-of-that-name"},
		"plugins.*.group":                      {"nobody-of-that-name"},
	}
	for _, section := range []string{"transport.tls", "management.tls", "gateway.tls"} {
		for _, file := range []string{"certificate", "key", "authorities"} {
			all[section+"."+file] = []string{
				w.path("none"), w.path("plain"), w.dir, w.path("stranger", file+".pem"), w.path("server", file+".pem"), w.path("client", file+".pem"),
				w.path("elsewhere", file+".pem"), w.path("over", file+".pem"), w.path("keyless", file+".pem"), "",
			}
		}
		all[section+".revocations"] = []string{w.path("none"), w.path("plain"), w.dir}
	}
	return all
}

// labels are the keys of texts that name nothing outside of the file: whatever they hold, no start fails for want of
// it.
func labels() []string {
	return []string{
		"cluster.name", "node.roles", "node.zone", "node.app-version", "membership.discovery.service", "membership.discovery.port-name",
		"membership.discovery.protocol", "membership.voters.role", "downing.static-quorum.role", "downing.keep-oldest.role", "downing.lease-majority.lease-name",
		"downing.lease-majority.role", "downing.stable-after", "reminders.name", "reminders.role", "ddata.role", "ddata.durable", "ddata.expire[].prefix",
		"ddata.groups[].prefix", "ddata.groups[].role", "gateway.kinds", "gateway.certificate-uri", "management.operators.certificate-uri", "plugins.*.args",
	}
}

// Each key of the reference whose value is a text names something that is drawn, or nothing at all.
func TestEveryNameInAFileIsDrawn(t *testing.T) {
	settings, err := config.Settings(cluster.Default())
	require.NoError(t, err)
	var texts []string
	for _, s := range settings {
		text := s.Type == config.TypeText || s.Type == config.TypeTexts || s.Type == config.TypeList && s.Item == config.TypeText
		if text && len(s.OneOf) == 0 {
			texts = append(texts, s.Key())
		}
	}
	known := append(slices.Collect(maps.Keys(newWorld(t).others())), labels()...)
	for _, key := range texts {
		require.Contains(t, known, key, "a new key: add it to others() if it names something outside of the file, else to labels()")
	}
	for _, key := range known {
		require.Contains(t, texts, key, "there is no such key any more: take it out of others() or labels()")
	}
}

// drawn returns the file of [world.whole] with other values of some keys; an empty value takes a key out.
func (w *world) drawn(value func(key string) string, chosen ...string) *tree {
	file := w.whole()
	w.secure(file, "management")
	w.secure(file, "gateway")
	if slices.ContainsFunc(chosen, func(key string) bool { return strings.HasPrefix(key, "plugins.") }) {
		file.set([]string{"downing", "strategy"}, "x")
	}
	for _, key := range chosen {
		path := strings.Split(strings.ReplaceAll(key, "*", "x"), ".")
		if v := value(key); v != "" {
			file.set(path, v)
		} else {
			file.remove(path)
		}
	}
	return file
}

// A check says of a file what a start says of it: the same faults, each with file, line and key, or none.
func TestACheckAndAStartSayTheSame(t *testing.T) {
	w := newWorld(t)
	others := w.others()
	keys := slices.Sorted(maps.Keys(others))
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	draw := func(value func(key string) string, chosen ...string) {
		file := w.drawn(value, chosen...)
		faults := said(t, file.write(t))
		for _, f := range faults {
			seen[strings.Replace(f.Key, "plugins.x", "plugins.*", 1)] = true
		}
		seen["none"] = seen["none"] || len(faults) == 0
	}
	for _, key := range keys { // Each value alone, then several.
		for _, value := range others[key] {
			draw(func(string) string { return value }, key)
		}
	}
	for range 60 {
		r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		draw(func(key string) string { return others[key][r.IntN(len(others[key]))] }, keys[:2+r.IntN(3)]...)
	}
	require.True(t, seen["none"])
	for key := range others {
		require.True(t, seen[key], "no draw has a fault of %s", key)
	}
}

// Certificates that can never work are refused in the words of quorate cert check, at their key.
func TestCertificatesThatNeverWorkAreRefused(t *testing.T) {
	w := newWorld(t)
	for name, want := range map[string]string{
		"good": "", "stranger": ": transport.tls.certificate: %s: none of %s has signed it: x509: certificate signed by unknown authority",
		"elsewhere": ": transport.tls.certificate: %s: 127.0.0.1 is not among its names: issue one with the host of node.address",
		"server":    ": transport.tls.certificate: %s: it is not for client authentication: issue one with both extended key usages, server and client",
		"client":    ": transport.tls.certificate: %s: it is not for server authentication",
		"over":      ": transport.tls.certificate: %s: it has expired on ",
	} {
		t.Run(name, func(t *testing.T) {
			file := w.whole()
			for _, key := range []string{"certificate", "key", "authorities"} {
				file.set([]string{"transport", "tls", key}, w.path(name, key+".pem"))
			}
			faults := said(t, file.write(t))
			if want == "" {
				require.Empty(t, faults)
				return
			}
			want = strings.Replace(strings.Replace(want, "%s", w.path(name, "certificate.pem"), 1), "%s", w.path(name, "authorities.pem"), 1)
			require.ErrorContains(t, faults, want)
		})
	}
}

// A plugin that this machine cannot start, as far as its file tells, is a fault with its key of a check and of a start,
// if the node would start it; of one that nothing chooses a check warns.
func TestPluginsThatCannotBeStartedAreRefused(t *testing.T) {
	dir := t.TempDir()
	plain, fit := filepath.Join(dir, "plain"), filepath.Join(dir, "fit")
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o600))
	require.NoError(t, os.WriteFile(fit, []byte("text"), 0o700))
	const sum = "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1"
	for name, test := range map[string]struct{ plugin, want string }{
		"fine":      {"path: " + fit + ", unpinned: true", ""},
		"pinned":    {"path: " + fit + ", sha256: " + sum, ""},
		"another":   {"path: " + fit + ", sha256: " + strings.Repeat("ab", 32), "plugins.x.sha256: is not that of " + fit + " on this machine, " + sum},
		"platforms": {"path: " + fit + ", sha256: [" + strings.Repeat("ab", 32) + ", " + sum + "]", ""},
		"none of them": {
			"path: " + fit + ", sha256: [" + strings.Repeat("ab", 32) + ", " + strings.Repeat("cd", 32) + "]",
			"plugins.x.sha256: has 2 checksums, none of which is that of " + fit + " on this machine, " + sum,
		},
		"missing":        {"path: " + dir + "/none, unpinned: true", "plugins.x.path: " + dir + "/none is not on this machine"},
		"directory":      {"path: " + dir + ", unpinned: true", "plugins.x.path: " + dir + " is a directory"},
		"not executable": {"path: " + plain + ", unpinned: true", "plugins.x.path: " + plain + " is not executable"},
		"variable":       {"path: '${DIR}/x', unpinned: true", `plugins.x.path: "${DIR}/x" has the variable ${DIR}`},
	} {
		t.Run(name, func(t *testing.T) {
			file := &tree{}
			file.set([]string{"cluster"}, "{name: test}")
			file.set([]string{"node"}, "{address: "+free(t)+"}")
			file.set([]string{"membership"}, "{seed-nodes: ['127.0.0.1:7946']}")
			file.set([]string{"plugins"}, "{x: {policy: downing, "+test.plugin+"}}")
			var warned []string
			own := cluster.Extensions{Options: []cluster.Option{cluster.WithPlugins(host.New())}, Warn: func(key, reason string) { warned = append(warned, key+": "+reason) }}
			require.NoError(t, cluster.Check(own, file.write(t)))
			require.Equal(t, test.want == "", len(warned) == 0, warned)
			file.set([]string{"downing"}, "{strategy: x}")
			path := file.write(t)
			if test.want == "" { // What stands for the executable is none, so that no node starts.
				require.NoError(t, cluster.Check(own, path))
				return
			}
			require.Contains(t, warned[0], test.want)
			require.ErrorContains(t, refused(t, path), path+":4: "+test.want)
		})
	}
}

// A plugin that may be debugged is a warning, chosen or not.
func TestACheckWarnsOfPluginsThatMayBeDebugged(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, downing := range []string{"keep-majority", "x"} {
		file := &tree{}
		file.set([]string{"cluster"}, "{name: test}")
		file.set([]string{"node"}, "{address: '127.0.0.1:7946'}")
		file.set([]string{"membership"}, "{seed-nodes: ['127.0.0.1:7946']}")
		file.set([]string{"plugins"}, "{x: {policy: downing, path: '"+self+"', unpinned: true, debug: true}}")
		file.set([]string{"downing"}, "{strategy: "+downing+"}")
		var told []string
		own := cluster.Extensions{Options: []cluster.Option{cluster.WithPlugins(host.New())}, Warn: func(key, reason string) { told = append(told, key+": "+reason) }}
		require.NoError(t, cluster.Check(own, file.write(t)))
		require.Equal(t, []string{
			"plugins.x.debug: no limit of time ends its start, and it is not killed when it does not answer: for development alone",
		}, told)
	}
}

// A directory in which the user of the process cannot write is a fault, as long as the system keeps root out of
// nothing.
func TestADirectoryThatCannotBeWrittenIsRefused(t *testing.T) {
	w := newWorld(t)
	file := w.whole()
	file.set([]string{"node", "data-dir"}, w.path("locked", "below"))
	faults := said(t, file.write(t))
	if mayAnything := os.Geteuid() == 0 || runtime.GOOS == "windows"; mayAnything {
		require.Empty(t, faults)
		return
	}
	require.ErrorContains(t, faults, "node.data-dir: this user cannot write in "+w.path("locked")+": permission denied")
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package deploytest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The configuration of a node as a pod has it: the file of the ConfigMap, with the environment of the
// container, in a directory that stands for the root of the container's file system. Certificates are
// made as the manifests have them made. quorate config check then says whether a node starts.

// configuration is the part of the file at which tests look.
type configuration struct {
	Membership struct {
		LeaveTimeout meta.Duration `json:"leave-timeout"`
		ExitTimeout  meta.Duration `json:"exit-timeout"`
	} `json:"membership"`
	Shutdown struct {
		Deadline meta.Duration `json:"deadline"`
	} `json:"shutdown"`
	Management struct {
		Address string `json:"address"`
		Health  struct {
			Address string `json:"address"`
			Metrics bool   `json:"metrics"`
		} `json:"health"`
	} `json:"management"`
	Telemetry struct {
		Metrics string `json:"metrics"`
	} `json:"telemetry"`
}

// settings decodes the configuration in the ConfigMap.
func settings(t *testing.T, all objects) (cfg configuration) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(get[*core.ConfigMap](t, all, "ConfigMap/visits").Data["cluster.yaml"]), &cfg))
	return cfg
}

// quorate is the path of the command, which TestMain builds.
var quorate string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "quorate")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	quorate = filepath.Join(dir, "quorate.exe") // The end of the name matters on Windows alone.
	cmd := exec.CommandContext(context.Background(), "go", "build", "-C", filepath.Join(root, "tools"), "-o", quorate, "./cmd/quorate")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	status := 1
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "quorate is not built: %v\n%s", err, out)
	} else {
		status = m.Run()
	}
	_ = os.RemoveAll(dir) // A temporary file that stays harms nothing.
	os.Exit(status)
}

// command runs quorate with an environment of its own, and returns what it prints.
func command(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), quorate, args...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// environment returns the variables of a container, with what a pod would put in.
func environment(t *testing.T, pod core.PodTemplateSpec, c core.Container) map[string]string {
	t.Helper()
	fields := map[string]string{"metadata.name": "visits-1", "status.podIP": "10.0.0.7"}
	for key, value := range pod.Labels {
		fields["metadata.labels['"+key+"']"] = value
	}
	env := map[string]string{}
	for _, v := range c.Env {
		value := v.Value
		if v.ValueFrom != nil {
			require.Contains(t, fields, v.ValueFrom.FieldRef.FieldPath)
			value = fields[v.ValueFrom.FieldRef.FieldPath]
		}
		env[v.Name] = expand(t, value, env)
	}
	return env
}

var reference = regexp.MustCompile(`\$\(([A-Z_]+)\)`)

// expand replaces $(NAME), as Kubernetes does; a name that was not declared before is a fault.
func expand(t *testing.T, text string, env map[string]string) string {
	t.Helper()
	return reference.ReplaceAllStringFunc(text, func(r string) string {
		name := r[2 : len(r)-1]
		require.Contains(t, env, name)
		return env[name]
	})
}

// within returns a text with each path of a mounted volume moved below a directory, and requires
// that no other absolute path is in the text.
func within(t *testing.T, dir, text string, c core.Container) string {
	t.Helper()
	said := regexp.MustCompile(`(?m)#.*$`).ReplaceAllString(text, "")
	for _, path := range regexp.MustCompile(`(?m)(?:^|[ {,=])(/[a-z][a-zA-Z0-9./-]*)`).FindAllStringSubmatch(said, -1) {
		mounted := false
		for _, m := range c.VolumeMounts {
			mounted = mounted || strings.HasPrefix(path[1], m.MountPath+"/")
		}
		require.True(t, mounted, "%s is in no volume", path[1])
	}
	for _, m := range c.VolumeMounts {
		text = strings.ReplaceAll(text, " "+m.MountPath+"/", " "+filepath.ToSlash(dir)+m.MountPath+"/")
	}
	return text
}

// certify puts the files of certificates where the pod has them: by the command of the init container,
// or as the Secret has them.
func certify(t *testing.T, dir string, all objects, w workload) {
	t.Helper()
	pod := w.pod.Spec
	put := func(path string) string { return filepath.Join(dir, filepath.FromSlash(path)) }
	mount := func(path string) {
		require.NoError(t, os.MkdirAll(put(path), 0o700))
	}
	authority, key := put("authority.pem"), put("authority-key.pem")
	out, err := command(t, nil, "cert", "authority", "-certificate", authority, "-key", key)
	require.NoError(t, err, out)
	if len(pod.InitContainers) == 0 {
		mount("/run/quorate/tls")
		names := []string{"visits-0.visits", "visits-1.visits", "visits-2.visits"}
		if c, is := all["Certificate/visits"].(*certificate); is {
			names = c.Spec.DNSNames
		}
		out, err = command(t, nil, append([]string{"cert", "node", "-authority", authority, "-authority-key", key, "-certificate", put("/run/quorate/tls/tls.crt"), "-key", put("/run/quorate/tls/tls.key")}, names...)...)
		require.NoError(t, err, out)
		move(t, authority, put("/run/quorate/tls/ca.crt"))
		return
	}
	init := pod.InitContainers[0]
	for _, m := range init.VolumeMounts {
		mount(m.MountPath)
	}
	move(t, authority, put("/authority/tls.crt"))
	move(t, key, put("/authority/tls.key"))
	env := environment(t, w.pod, init)
	require.Equal(t, "/quorate", init.Command[0])
	for range 2 { // An init container may run again in a pod whose volumes are there.
		var args []string
		for _, arg := range append(init.Command[1:], init.Args...) {
			args = append(args, strings.TrimSpace(within(t, dir, " "+expand(t, arg, env), init)))
		}
		out, err = command(t, nil, args...)
		require.NoError(t, err, out)
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		switch m.Name {
		case "tls":
			mount(m.MountPath)
			move(t, put("/etc/quorate/tls/tls.crt"), put(m.MountPath+"/tls.crt"))
			move(t, put("/etc/quorate/tls/tls.key"), put(m.MountPath+"/tls.key"))
		case "authorities":
			mount(m.MountPath)
			move(t, put("/authority/tls.crt"), put(m.MountPath+"/ca.crt"))
		}
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.Rename(from, to))
}

// checked lays out the file system of a node's container, and returns what config check says.
func checked(t *testing.T, all objects, w workload, change func(string) string) (string, error) {
	t.Helper()
	dir, node := t.TempDir(), w.pod.Spec.Containers[0]
	certify(t, dir, all, w)
	path := filepath.Join(dir, "cluster.yaml")
	text := within(t, dir, get[*core.ConfigMap](t, all, "ConfigMap/visits").Data["cluster.yaml"], node)
	require.NoError(t, os.WriteFile(path, []byte(change(text)), 0o600))
	var env []string
	for name, value := range environment(t, w.pod, node) {
		env = append(env, name+"="+value)
	}
	return command(t, env, "config", "check", path)
}

// The configuration of every variant is one with which a node starts, with the certificates that the
// manifests have made for it.
func TestTheConfigurationOfEveryVariantIsRight(t *testing.T) {
	each(t, func(t *testing.T, all objects, w workload) {
		out, err := checked(t, all, w, func(text string) string { return text })
		require.NoError(t, err, out)
		require.True(t, strings.HasPrefix(out, "ok\n"), out)
		require.Contains(t, out, "prometheus.Endpoint()", "the program links what the file asks for")
		require.NotContains(t, out, "not kept")
	})
}

// The file that the container names is the one that is mounted, and the configuration is of this map.
func TestTheContainerReadsTheFileOfTheMap(t *testing.T) {
	each(t, func(t *testing.T, all objects, w workload) {
		node := w.pod.Spec.Containers[0]
		require.Equal(t, []string{"-config", "/etc/quorate/cluster.yaml"}, node.Args[:2])
		config := volume(t, w.pod.Spec, "config")
		require.Contains(t, all, "ConfigMap/"+config.ConfigMap.Name)
	})
}

// What is wrong with the configuration of a variant is found: one fault at a time.
func TestFaultsOfConfigurationsAreFound(t *testing.T) {
	all := build(t, "statefulset")
	for want, f := range map[string][2]string{
		"unknown key":          {"leave-timeout", "leave-timout"},
		"transport.tls":        {"tls.crt", "tls.pem"},
		"is not a duration":    {"exit-timeout: 5s", "exit-timeout: soon"},
		"management":           {"127.0.0.1:8080", "0.0.0.0:8080"},
		"is not part of this":  {"", ""},
		"must be set together": {", authorities: ", ", revocations: "},
	} {
		out, err := checked(t, all, nodes(t, all), func(text string) string { return strings.Replace(text, f[0], f[1], 1) })
		if f[0] == "" {
			require.NoError(t, err)
		} else {
			require.Error(t, err, out)
		}
		require.Contains(t, out, want)
	}
}

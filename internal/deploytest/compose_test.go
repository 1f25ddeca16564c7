// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package deploytest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

// The nodes for Docker: compose.yaml is loaded as docker compose does, by its schema; the commands of
// its services that make certificates are run, and the configuration is checked with what they have
// made. The Dockerfile is read line by line.

// project loads compose.yaml.
func project(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "deploy", "compose.yaml")}, cli.WithDiscardEnvFile, cli.WithName("visits"))
	require.NoError(t, err)
	p, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	return p
}

// Certificates are made by the commands of the services, a second time too, and with them the
// configuration of each node is right.
func TestTheNodesOfComposeStart(t *testing.T) {
	p := project(t)
	dir := t.TempDir()

	tls := filepath.Join(dir, "tls")
	require.NoError(t, os.Mkdir(tls, 0o700))
	for range 2 {
		for _, name := range []string{"authority", "certificate"} {
			s := p.Services[name]
			require.Equal(t, "/etc/quorate/tls", s.WorkingDir)
			require.Equal(t, "/quorate", s.Entrypoint[0])
			t.Chdir(tls)
			out, err := command(t, nil, s.Entrypoint[1:]...)
			require.NoError(t, err, out)
		}
	}
	t.Chdir(dir)
	names := 0
	for name, s := range p.Services {
		address, is := s.Environment["QUORATE_NODE__ADDRESS"]
		if !is {
			continue
		}
		names++
		require.Equal(t, name+":7946", *address)
		source := s.Volumes[0]
		require.Equal(t, "/etc/quorate/cluster.yaml", source.Target)
		text, err := os.ReadFile(source.Source)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile("cluster.yaml", text, 0o600))
		out, err := command(t, []string{"QUORATE_NODE__ADDRESS=" + *address}, "config", "check", "cluster.yaml")
		require.NoError(t, err, out)
		out, err = command(t, nil, "cert", "check", "-certificate", "tls/node.pem", "-key", "tls/node-key.pem", "-authorities", "tls/authority.pem", "-host", *address)
		require.NoError(t, err, out)
		require.Contains(t, string(text), `"`+*address+`"`, "the seed nodes are the three")
		require.Len(t, s.DependsOn, 2)
		for _, d := range s.DependsOn {
			require.Equal(t, types.ServiceConditionCompletedSuccessfully, d.Condition)
		}
		require.True(t, s.ReadOnly)
		require.Equal(t, []string{"ALL"}, s.CapDrop)
		require.GreaterOrEqual(t, time.Duration(*s.StopGracePeriod), 25*time.Second)
		for _, port := range s.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP)
		}
	}
	require.Equal(t, 3, names)
}

// The image is built in two stages, what it copies exists, and it runs as a user without rights.
func TestTheImageHasNoMoreThanItNeeds(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy", "Dockerfile"))
	require.NoError(t, err)
	last := string(text)[strings.LastIndex(string(text), "\nFROM "):]
	require.Equal(t, 2, strings.Count(string(text), "\nFROM "))
	require.Regexp(t, `^\nFROM gcr\.io/distroless/static-debian\d+:nonroot\n`, last)
	require.Contains(t, last, "\nUSER 65532:65532\n")
	require.Contains(t, last, "\nENTRYPOINT [\"/node\"]\n")
	require.NotContains(t, last, "\nRUN ")
	for _, copied := range regexp.MustCompile(`(?m)^COPY --from=build (.*)$`).FindAllStringSubmatch(last, -1) {
		for source := range strings.FieldsSeq(copied[1]) {
			if strings.HasPrefix(source, "/out/") {
				require.Contains(t, string(text)[:len(text)-len(last)], source, "the first stage makes it")
			}
		}
	}
	for _, program := range regexp.MustCompile(`\./[a-z/]+`).FindAllString(string(text), -1) {
		require.DirExists(t, filepath.Join(root, program))
	}
}

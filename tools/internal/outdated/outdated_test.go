// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package outdated

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequirementsAreRead(t *testing.T) {
	root := t.TempDir()
	for dir, text := range map[string]string{
		"a":         "module github.com/quorate/quorate/a\n\nrequire (\n\tx.org/m v1.2.0\n\tx.org/far v1.0.0 // indirect\n\tgithub.com/quorate/quorate/b v0.0.0\n)\n",
		"b":         "module github.com/quorate/quorate/b\n\nrequire x.org/m v1.10.0\n\nrequire x.org/n v0.1.0\n",
		"transport": "module github.com/quorate/quorate/transport\n\nrequire x.org/brought v1.0.0 // indirect\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, dir, "go.mod"), []byte(text), 0o600))
	}
	all, err := Requirements(root, []string{"a", "b", "transport"})
	require.NoError(t, err)
	require.Equal(t, []Requirement{
		{Path: "x.org/brought", Version: "v1.0.0", By: []string{"transport"}},
		{Path: "x.org/m", Version: "v1.10.0", By: []string{"a", "b"}},
		{Path: "x.org/n", Version: "v0.1.0", By: []string{"b"}},
	}, all)
	_, err = Requirements(root, []string{"c"})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestWhatIsBehindIsListed(t *testing.T) {
	required := []Requirement{
		{"x.org/behind", "v1.0.0", []string{"a", "b"}},
		{"x.org/held", "v1.0.0", []string{"a"}},
		{"x.org/new", "v1.1.0", nil},
		{"x.org/secret", "v1.0.0", nil},
		{"x.org/silent", "v1.0.0", nil},
		{"x.org/unlisted", "v1.0.0", nil},
	}
	latest, err := decode(strings.NewReader(`{"Path": "x.org/behind", "Version": "v1.2.0"} {"Path": "x.org/held", "Version": "v2.0.0"}
		{"Path": "x.org/new", "Version": "v1.1.0"} {"Path": "x.org/secret", "Version": "latest", "Error": {"Err": "module x.org/secret: 403 Forbidden\n\tserver response: not available."}}
		{"Path": "x.org/unlisted", "Version": "latest", "Error": {"Err": "module x.org/unlisted: git ls-remote -q in /a/b: exit status 128:\n\tfatal: no host: x.org"}}`))
	require.NoError(t, err)
	all, err := look(required, latest, "x.org/held needs a newer Go\n")
	require.NoError(t, err)
	var out strings.Builder
	Print(&out, all)
	require.Equal(t, `x.org/behind v1.0.0 -> v1.2.0
   no reason to stay: raise it in a, b
x.org/held v1.0.0 -> v2.0.0
   needs a newer Go
x.org/silent v1.0.0: newest not known: the proxy does not say
x.org/unlisted v1.0.0: newest not known: the proxy lists no version; its repository: no host: x.org
x.org/secret v1.0.0: newest not known: the proxy says: not available.
`, out.String())

	_, err = look(required, latest, "x.org/new tried\nx.org/gone tried\nx.org/held tried\n")
	require.EqualError(t, err, "held.txt: not behind, or not required: x.org/gone, x.org/new")
	_, err = look(required, latest, "x.org/held\n")
	require.EqualError(t, err, "held.txt: x.org/held has no reason")
	_, err = decode(strings.NewReader("{"))
	require.Error(t, err)
	out.Reset()
	Print(&out, nil)
	require.Equal(t, "nothing is behind\n", out.String())
}

// Each line of held.txt has a reason, and its module is required.
func TestWhatIsHeldIsRequired(t *testing.T) {
	dirs, err := Modules(t.Context(), "../../..")
	require.NoError(t, err)
	required, err := Requirements("../../..", dirs)
	require.NoError(t, err)
	for line := range strings.Lines(held) {
		path, why, _ := strings.Cut(strings.TrimSpace(line), " ")
		require.NotEmpty(t, why, path)
		found := false
		for _, r := range required {
			found = found || r.Path == path
		}
		require.True(t, found, "no module requires %s any more", path)
	}
}

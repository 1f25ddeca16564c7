// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package membership_test

import (
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
)

// A key that anybody may read, and a directory in which anybody may write, are worth a
// warning that names the cure; modes as platforms mount secrets and volumes are not.
func TestLooseModesWarn(t *testing.T) {
	for name, test := range map[string]struct {
		key, directory fs.FileMode
		wants          []string
	}{
		"strict":            {0o600, 0o700, nil},
		"mounted":           {0o440, 0o770, nil},
		"key for all":       {0o644, 0o700, []string{"key.pem has mode 0644", "give it 0600"}},
		"key to change":     {0o660, 0o700, []string{"key.pem has mode 0660"}},
		"directory for all": {0o600, 0o777, []string{"has mode 0777", "give it 0700"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := mutualtest.NewAuthority(t, "ca")
			cfg := overGRPC(t)
			cfg.Transport.TLS = a.Write(t, t.TempDir(), a.Issue(t, mutualtest.Leaf{}))
			cfg.Node.DataDir = t.TempDir()
			require.NoError(t, os.Chmod(cfg.Transport.TLS.Key, test.key))
			require.NoError(t, os.Chmod(cfg.Node.DataDir, test.directory))
			log := new(lines)
			n, err := membership.Start(t.Context(), cfg, membership.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
			require.NoError(t, err)
			require.NoError(t, n.Close())
			require.Equal(t, len(test.wants) > 0, strings.Contains(log.String(), "level=WARN"), log)
			for _, want := range test.wants {
				require.Contains(t, log.String(), want)
			}
		})
	}
}

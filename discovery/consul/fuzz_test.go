// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consul

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
)

// FuzzAnswer decodes any answer: a list of registrations that is accepted gives valid contact
// points.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		`[{"Node":{"Address":"10.0.0.1"},"Service":{"Address":"","Port":7946,"Meta":{"port-management":"8558","port-x":"y"}}}]`,
		`[{"Service":{"Address":"Node.example","Port":0}},{"Service":{"Address":"fd00::1","Port":1}},{}]`,
		`[{"Service":{"Address":"::ffff:10.0.0.1"}},{"Service":{"Address":"fe80::1%eth0"}},{"Service":{"Address":"0.0.0.0"}}]`,
		`[]`, `[] `, `[][]`, `[`, `{}`, `null`, ``, `<html>`, `[{"Service":{"Port":70000}}]`, `[7]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := decode(bytes.NewReader(data))
		if err != nil {
			require.True(t, errors.Is(err, ErrMalformed) || errors.Is(err, errTooMany))
			require.Nil(t, entries)
			return
		}
		for _, port := range []string{"", "management", "1"} {
			list, bad, err := targets(entries, port)
			require.NoError(t, err)
			require.LessOrEqual(t, len(list)+bad, len(entries))
			again, err := discovery.Distinct(list)
			require.NoError(t, err)
			require.Equal(t, list, again)
		}
	})
}

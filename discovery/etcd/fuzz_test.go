// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzEntry reads any value: an entry that is accepted gives valid contact points, and reads
// the same after it was written again.
func FuzzEntry(f *testing.F) {
	for _, text := range []string{
		`{"host":"10.0.0.1","port":7946,"ports":{"management":8558}}`, `{"host":"fd00::1","port":1}`,
		`{"host":"node.example","port":65535}`, `{"host":"A","port":1}`, `{"host":"a"}`, `{"host":"a","port":65536}`,
		`{"host":"a","port":1,"ports":{"":1}}`, `{"host":"a","port":1,"ports":{"x":0}}`, `{"host":"::ffff:1.2.3.4","port":1}`,
		`{"host":"0.0.0.0","port":1}`, `{}`, `[]`, `null`, ``, `7`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := decode(data)
		if err != nil {
			require.Zero(t, e)
			return
		}
		for _, port := range []string{"", "management", "1", "0", "65536"} {
			require.NoError(t, e.target(port).Validate())
		}
		text, err := e.value()
		require.NoError(t, err)
		again, err := decode([]byte(text))
		require.NoError(t, err)
		require.Equal(t, e.target("management"), again.target("management"))
	})
}

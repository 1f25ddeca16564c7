// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzLease decodes any Lease: what is accepted can be changed and is read again as it was
// written.
func FuzzLease(f *testing.F) {
	const whole = `{"kind":"Lease","metadata":{"name":"bank","resourceVersion":"7"},"spec":{"holderIdentity":"z","leaseDurationSeconds":20,"leaseTransitions":3}}`
	for _, text := range []string{
		whole, whole[:60], `{"kind":"Lease","metadata":{"name":"bank","resourceVersion":"7"}}`, `{"kind":"Lease","metadata":{"name":"bank","resourceVersion":"7"},"spec":null}`,
		`{"kind":"Lease","metadata":{"name":"bank"}}`, `{"kind":"Lease","metadata":{"name":"bank","resourceVersion":"7"},"spec":[]}`,
		`{"kind":"Lease","metadata":{"name":"bank","resourceVersion":"7"},"spec":{"leaseDurationSeconds":-1}}`, `null`, `[]`, ``, `<html>`,
		`{"kind":"Lease","metadata":{"name":"bank","resourceVersion":"7"},"Spec":{"leaseTransitions":1},"spec":{"leaseTransitions":2}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := decode(data, "bank")
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			require.Nil(t, o)
			return
		}
		next, err := o.held("a", 3*time.Second, o.transitions, time.Unix(0, 0))
		require.NoError(t, err)
		text, err := next.encode()
		require.NoError(t, err)
		again, err := decode(text, "bank")
		require.NoError(t, err, "%s", text)
		require.Equal(t, "a", again.holder)
		require.Equal(t, o.version, again.version)
		require.Equal(t, o.transitions, again.transitions)
		require.Equal(t, 3*time.Second, again.duration)
	})
}

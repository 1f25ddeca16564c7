// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
)

const podText = `{"metadata":{"name":"a","uid":"u","resourceVersion":"7"},"spec":{"containers":[{"ports":[` +
	`{"name":"management","containerPort":8558,"protocol":"TCP"}]}]},"status":{"phase":"Running","podIP":"10.0.0.1",` +
	`"podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}],"conditions":[{"type":"Ready","status":"True"}]}}`

const sliceText = `{"metadata":{"name":"s","resourceVersion":"8"},"addressType":"IPv4","endpoints":[` +
	`{"addresses":["10.0.0.1","10.0.0.2"],"conditions":{"ready":false,"terminating":true},"targetRef":{"uid":"u"}},` +
	`{"addresses":["Node.example"]},{}],"ports":[{"name":"management","port":8558}]}`

func objectSeeds(f *testing.F) {
	for _, text := range []string{
		podText, sliceText, "", "{}", "null", "[]", `{"metadata":7}`, `{"metadata":{"name":"a"}}`,
		`{"metadata":{"name":"a","deletionTimestamp":"x"},"status":{"phase":"Running"}}`,
		`{"metadata":{"name":"a"},"status":{"phase":"Running","podIP":"127.0.0.1"}}`,
		`{"metadata":{"name":"a"},"status":{"phase":"Running","podIP":"::ffff:10.0.0.1"}}`,
		`{"metadata":{"name":"a"},"status":{"phase":"Running","podIP":"fe80::1%eth0"}}`,
		`{"metadata":{"name":"a"},"status":{"phase":"Running"}}`,
		`{"metadata":{"name":"a"},"spec":{"containers":[{"ports":[{"containerPort":65536}]}]}}`,
	} {
		f.Add([]byte(text))
	}
}

// checkTargets checks that an object which was accepted gives valid contact points.
func checkTargets(t *testing.T, o object, err error) {
	t.Helper()
	if err != nil {
		require.Zero(t, o)
		require.Less(t, len(err.Error()), 1000)
		return
	}
	s := newStore("test")
	require.NoError(t, s.put(o))
	for _, want := range []endpointFilter{
		{}, {port: "management", protocol: "tcp"}, {port: "1", readyOnly: true}, {family: FamilyIPv4}, {family: FamilyIPv6},
	} {
		found, err := s.targets(want)
		if err != nil {
			require.NotEmpty(t, want.port)
			continue
		}
		unique, err := discovery.Distinct(found.List)
		require.NoError(t, err)
		require.Len(t, unique, len(found.List))
	}
	s.remove(o.name)
	require.Zero(t, s.held)
}

// FuzzPod decodes any pod: if it is accepted, its contact points are valid.
//
// covers B58, see docs/verification.md.
func FuzzPod(f *testing.F) {
	objectSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := decodePod(data)
		checkTargets(t, o, err)
	})
}

// FuzzSlice decodes any EndpointSlice: if it is accepted, its contact points are valid.
//
// covers B58, see docs/verification.md.
func FuzzSlice(f *testing.F) {
	objectSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := decodeSlice(data)
		checkTargets(t, o, err)
	})
}

// FuzzList reads pages of lists.
func FuzzList(f *testing.F) {
	for _, text := range []string{
		`{"kind":"PodList","metadata":{"resourceVersion":"1","continue":"c"},"items":[` + podText + `]}`,
		`{"kind":"PodList","metadata":{"resourceVersion":"1"}}`, `{"kind":"PodList"}`, `{}`, ``, `<html>`, `[1`, `null`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		page, err := decodeList(bytes.NewReader(data), "PodList")
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		require.NotEmpty(t, page.Metadata.ResourceVersion)
		for _, item := range page.Items {
			require.True(t, json.Valid(item))
		}
	})
}

// FuzzEvents reads any watch: it ends, and the store that it has changed is valid.
func FuzzEvents(f *testing.F) {
	for _, text := range []string{
		`{"type":"ADDED","object":` + podText + "}\n" + `{"type":"DELETED","object":` + podText + "}\n",
		`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}`,
		`{"type":"ERROR","object":{"code":410,"message":"too old"}}`,
		`{"type":"ERROR","object":{}}`, `{"type":"MOVED","object":{}}`, `{"type":"ADDED","object":{}}`,
		`{"type":"MODIFIED","object":` + podText[:40], `{}`, `[]`, `x`, ``,
	} {
		f.Add([]byte(text))
	}
	s := &source{client: &client{}, resource: podResource(), namespace: "prod"}
	f.Fuzz(func(t *testing.T, data []byte) {
		found, version := newStore("test"), "1"
		stream := newEvents(bytes.NewReader(data), time.Minute, func() {})
		for range len(data) + 1 {
			e, err := stream.next()
			if err == nil {
				version, err = s.apply(s.request("watch", nil), e, version, found)
			}
			require.NotEmpty(t, version)
			if err != nil {
				_, refused := errors.AsType[*StatusError](err)
				require.True(t, refused || errors.Is(err, ErrMalformed) || errors.Is(err, errBrokenOff), "%v", err)
				_, _ = found.targets(endpointFilter{})
				return
			}
		}
		t.Fatal("more events than bytes")
	})
}

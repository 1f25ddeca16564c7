// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
)

// durationKeys returns the keys of all durations of a struct.
func durationKeys(of reflect.Type, path []string) (keys []string) {
	for f := range of.Fields() {
		name, rest, _ := strings.Cut(f.Tag.Get("koanf"), ",")
		at := path
		if rest != "squash" {
			at = append(slices.Clip(path), name)
		}
		switch {
		case name == "" && rest == "":
		case f.Type == reflect.TypeFor[time.Duration]():
			keys = append(keys, strings.Join(at, "."))
		case f.Type.Kind() == reflect.Struct:
			keys = append(keys, durationKeys(f.Type, at)...)
		}
	}
	return keys
}

// A duration that is wrong by itself is one fault: nothing is said of what else does not fit it.
func TestAMistakeIsOneFault(t *testing.T) {
	keys := durationKeys(reflect.TypeFor[cluster.Config](), nil)
	require.Greater(t, len(keys), 30)
	for _, key := range keys {
		for _, value := range []string{"-1s", "2562000h"} {
			parts := strings.Split(key, ".")
			line := strings.Join(parts, ": {") + ": " + value + strings.Repeat("}", len(parts)-1)
			err := cluster.Check(cluster.Own{}, file(t, "cluster: {name: test}", "node: {address: 127.0.0.1:7946}", line))
			if faults, refused := errors.AsType[config.Errors](err); refused {
				require.Len(t, faults, 1, "%s: %v", line, err)
			}
		}
	}
}

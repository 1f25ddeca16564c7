// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/ddata/services/registry"
	"github.com/quorate/quorate/gossip"
)

// Every field of what explains something has a name of its own in JSON, in the form of the
// others, and no field is an identity in parts.
func TestExplanationsHaveNamesInJSON(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var check func(of reflect.Type)
	check = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Slice, reflect.Map, reflect.Pointer:
			check(of.Elem())
		case reflect.Struct:
			if seen[of] || of == reflect.TypeFor[time.Time]() {
				return
			}
			seen[of] = true
			for f := range of.Fields() {
				require.Regexp(t, `^[a-z][a-zA-Z]*(,omit(empty|zero))?$`, f.Tag.Get("json"), "%v.%s", of, f.Name)
				require.NotEqual(t, reflect.TypeFor[gossip.NodeID](), f.Type, "%v.%s is not text", of, f.Name)
				check(f.Type)
			}
		default:
		}
	}
	check(reflect.TypeFor[ddata.Explanation]())
	check(reflect.TypeFor[ddata.Value]())
	check(reflect.TypeFor[registry.Explanation]())
	check(reflect.TypeFor[pubsub.Explanation]())
	require.Greater(t, len(seen), 8)
}

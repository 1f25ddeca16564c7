// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package eventlog_test

import (
	"fmt"

	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/state/eventlog"
	"github.com/quorate/quorate/sharding/state/store"
)

// A page has names, each a field of its snapshot or of an event.
func ExampleFold() {
	const form, name = 1, 1
	record := store.Record{
		Snapshot: store.Value{Form: form, Bytes: wire.AppendString(wire.AppendString(nil, name, "ada"), name, "bob")},
		Events:   []store.Value{{Form: form, Bytes: wire.AppendString(nil, name, "eve")}},
	}
	var names []string
	err := eventlog.Fold(record, form, func(f *wire.Field) error {
		text, err := f.Text(10)
		names = append(names, text)
		return err
	})
	fmt.Println(names, err)

	tail := eventlog.TailOf(record)
	fmt.Println(tail, "a snapshot is due:", tail.Due(10))

	err = eventlog.Fold(record, 2, func(*wire.Field) error { return nil })
	fmt.Println(err)
	// Output:
	// [ada bob eve] <nil>
	// {1 5} a snapshot is due: false
	// written in a newer form: value 0 has form 1, this program reads form 2
}

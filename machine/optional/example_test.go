// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package optional_test

import (
	"fmt"
	"io"
	"reflect"

	"github.com/quorate/quorate/machine/optional"
)

// file is closed by nobody: its Close is not that of io.Closer.
type file struct{}

func (file) Close() {}

func Example() {
	fmt.Println(optional.Check(file{}, nil, reflect.TypeFor[io.Closer]()))
	// Output:
	// method Close of optional_test.file is a func(), and has to be a func() error as in io.Closer: it would never be called
}

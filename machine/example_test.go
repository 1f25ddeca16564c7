// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/machine"
)

// reminder publishes a text a moment after it was told the text.
type reminder struct{ text string }

func (m *reminder) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	switch in := in.(type) {
	case string:
		m.text = in
		out.Arm("remind", now.Mono.Add(10*time.Millisecond))
	case machine.Fired:
		out.Publish(m.text)
	}
}

func ExampleDriver() {
	published := make(chan any, 1)
	d := machine.NewDriver(machine.Ports{
		Clock:   machine.NewSystemClock(),
		Publish: func(_ *machine.Component, event any) { published <- event },
	}, 0)
	h, err := d.Attach(machine.Component{Name: "reminder", Machine: new(reminder)})
	if err != nil {
		fmt.Println(err)
		return
	}
	d.Start()
	defer d.Close() //nolint:errcheck // Close always succeeds.
	if err := h.PostWait(context.Background(), "tea is ready"); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-published)
	// Output: tea is ready
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state"
)

// reading is what a device has measured. The zero value asks for the state and measures nothing.
type reading struct {
	Sequence uint64  `json:"sequence"` // Chosen by the device, from 1, and higher for each reading.
	Value    float64 `json:"value"`
}

// device is the state of one device, as it is stored and answered.
type device struct {
	Count    uint64  `json:"count"`    // Of readings.
	Sequence uint64  `json:"sequence"` // The number of the last reading.
	Last     float64 `json:"last"`     // Its value.
	Sum      float64 `json:"sum"`      // Of all values.
}

// take counts a reading, unless it was counted before.
func (d *device) take(r *reading) {
	if r.Sequence > d.Sequence {
		d.Count, d.Sequence, d.Last, d.Sum = d.Count+1, r.Sequence, r.Value, d.Sum+r.Value
	}
}

// kind is the kind of the devices, in the cluster and in the table of their states.
const kind = "device"

// open starts the devices on a node. A reading is in the database before its answer leaves.
func open(node *cluster.Node) (*sharding.Region[*reading], error) {
	return sharding.Start(node, sharding.Kind[*reading]{
		Name: kind, Codec: sharding.JSON{},
		New: state.Snapshots(node.States(), state.JSON[device](), func(c *state.Context[device], r *reading) error {
			c.State().take(r)
			answer := *c.State() // A reply shares no memory with the state.
			return c.Reply(&answer)
		}),
	})
}

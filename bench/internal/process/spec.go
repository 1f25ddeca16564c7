// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import "time"

// Spec tells a process what to do. It is passed as an argument.
type Spec struct {
	Role      string        `json:"role"`
	Time      time.Duration `json:"time"`      // How long to measure.
	Size      int           `json:"size"`      // Bytes of a message.
	Senders   int           `json:"senders"`   // Goroutines that send.
	Entities  int           `json:"entities"`  // Number of entities to use or to make.
	InMemory  int           `json:"in_memory"` // How many entities a node may have in memory; any number when zero.
	Rate      int           `json:"rate"`      // How many remembered entities begin in a second; any number when zero.
	Before    int           `json:"before"`    // Under which number of shards entities are remembered; the present one when zero.
	Blocked   int           `json:"blocked"`   // Further entities, which sleep at their messages.
	Batch     int           `json:"batch"`     // Messages in one message of gRPC.
	Nodes     int           `json:"nodes"`     // Members of a cluster.
	Shards    int           `json:"shards"`    // Shards of the kind of the entities; the default when zero.
	Proxy     bool          `json:"proxy"`     // The node that measures hosts nothing.
	Apart     bool          `json:"apart"`     // Each node has an IP address of its own.
	Telemetry bool          `json:"telemetry"` // Nodes have metrics that are fetched, and traces.
	Lane      string        `json:"lane"`      // What carries messages, as transport.lane has it; the default when empty.
	Secure    bool          `json:"secure"`    // Nodes speak mutual TLS.
	Keys      string        `json:"keys"`      // For a peer: the directory with its certificate; none when empty.
	Awake     bool          `json:"awake"`     // Keep the processors awake during the measurement.
	Oldest    bool          `json:"oldest"`    // Kill the oldest node, not the youngest.
	Seeds     []string      `json:"seeds"`     // For a peer: the seed nodes to join.
	Data      string        `json:"data"`      // For a peer: its data directory; none when empty.
	Limit     time.Duration `json:"limit"`     // After this time the run has failed.
	Profile   string        `json:"profile"`   // Directory for profiles of the processor; none when empty.
}

// As returns the spec of a peer with another role.
func (s Spec) As(role string) Spec {
	s.Role = role
	return s
}

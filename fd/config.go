// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd

import (
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/config/field"
)

// The section of the configuration: its defaults, its faults, and the factory that
// makes detectors of the strategy that it names.

// The names of the built-in strategies.
const (
	// StrategyPhiAccrual is the name of [PhiAccrual].
	StrategyPhiAccrual = "phi-accrual"
	// StrategyDeadline is the name of [Deadline]; its limit is the heartbeat
	// interval plus the acceptable pause.
	StrategyDeadline = "deadline"
)

// ErrUnknownStrategy is wrapped by the error of [NewFactory] when the configuration names
// a strategy that is not built in. Who has a [Factory] of its own needs none from there.
var ErrUnknownStrategy = errors.New("unknown strategy")

// Config is the section "failure-detector" of a configuration file. The zero value is not valid; start from [Default].
// Durations are 4 ns and more, since a quarter of an interval must not be zero.
type Config struct {
	// Strategy is the name of the detector: "phi-accrual", "deadline", that of a detector of
	// the program, or that of a plugin. Beside one that is not built in and may take its time,
	// as a plugin does, phi-accrual learns from the same answers, and decides while there is
	// no verdict.
	Strategy string `koanf:"strategy" known:"phi-accrual|deadline"`

	// Threshold is the phi at which a node is suspected, from 1 to below 1000
	// ([MaxPhi]). A lower threshold finds failures sooner and accuses wrongly more
	// often. Used by phi-accrual alone.
	Threshold float64 `koanf:"threshold" unit:"phi" range:"1..<1000"`

	// MaxSampleSize is the number of latest intervals from which phi-accrual learns,
	// from 2 to 10,000; 8 bytes each for each monitored node. A larger number adapts
	// more slowly. Used by phi-accrual alone.
	MaxSampleSize int `koanf:"max-sample-size" unit:"intervals" range:"2..10000"`

	// MinStdDeviation is the least deviation of intervals that is assumed, above zero.
	// If it is too low, any small delay is suspicious after a time of very regular
	// answers. Used by phi-accrual alone.
	MinStdDeviation time.Duration `koanf:"min-std-deviation" range:"4ns..1h"`

	// AcceptableHeartbeatPause is added to the time at which an answer is expected,
	// and is the shortest silence at which any node is suspected. It must be above
	// zero. If it is shorter than the pauses of garbage collection or of the
	// scheduler, healthy nodes are accused.
	AcceptableHeartbeatPause time.Duration `koanf:"acceptable-heartbeat-pause" range:"4ns..1h"`

	// MaxSilence is the silence at which a node is suspected whatever the strategy
	// says. It is at least AcceptableHeartbeatPause and above HeartbeatInterval. The
	// time that a failover takes grows with it.
	MaxSilence time.Duration `koanf:"max-silence" range:"4ns..1h"`

	// HeartbeatInterval is the time between two heartbeats to a monitored node,
	// above zero. Halving it doubles the traffic.
	HeartbeatInterval time.Duration `koanf:"heartbeat-interval" range:"4ns..1h"`

	// ExpectedResponseAfter is the time within which a newly monitored node is
	// expected to answer for the first time, above zero. After it, the silence of a
	// node that has not answered begins to count.
	ExpectedResponseAfter time.Duration `koanf:"expected-response-after" range:"4ns..1h"`

	// MonitoredByNrOfMembers is how many nodes each node monitors, and by how many it
	// is monitored, at least 1. In a cluster with at most one node more than that,
	// every node monitors every other. All nodes must have the same value.
	MonitoredByNrOfMembers int `koanf:"monitored-by-nr-of-members" unit:"nodes" range:"1.."`
}

// Default returns the settings for machines in one data center: a dead node is
// suspected 3 to 5 seconds after its last answer.
func Default() Config {
	return Config{
		Strategy:                 StrategyPhiAccrual,
		Threshold:                8,
		MaxSampleSize:            1000,
		MinStdDeviation:          100 * time.Millisecond,
		AcceptableHeartbeatPause: 3 * time.Second,
		MaxSilence:               5 * time.Second,
		HeartbeatInterval:        time.Second,
		ExpectedResponseAfter:    time.Second,
		MonitoredByNrOfMembers:   9,
	}
}

// Bounds are the bounds of silence: from AcceptableHeartbeatPause to MaxSilence.
func (c Config) Bounds() Bounds {
	return Bounds{MinSilence: c.AcceptableHeartbeatPause, MaxSilence: c.MaxSilence}
}

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(c.Strategy == "", "strategy", "none given")
	faults.Add(field.Ranges(c))
	faults.Relate(c.MaxSilence < c.AcceptableHeartbeatPause,
		"max-silence", "acceptable-heartbeat-pause", "%v is below acceptable-heartbeat-pause %v", c.MaxSilence, c.AcceptableHeartbeatPause)
	faults.Relate(c.MaxSilence <= c.HeartbeatInterval,
		"max-silence", "heartbeat-interval", "%v is not above heartbeat-interval %v, so every node would be suspected between two heartbeats",
		c.MaxSilence, c.HeartbeatInterval)
	return faults.Err()
}

// BuiltIns are the names of the built-in strategies.
func BuiltIns() []string { return []string{StrategyPhiAccrual, StrategyDeadline} }

// NewFactory returns the factory of the built-in strategy that the configuration
// names. The error is that of [Config.Validate], or wraps [ErrUnknownStrategy].
func NewFactory(config Config) (Factory, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	switch config.Strategy {
	case StrategyDeadline:
		limit := config.HeartbeatInterval + config.AcceptableHeartbeatPause
		return func() Detector { return &Deadline{limit: limit} }, nil
	case StrategyPhiAccrual:
		return func() Detector { return newPhiAccrual(config) }, nil
	}
	return nil, &field.Error{
		Key:    "strategy",
		Reason: fmt.Sprintf("%q is not built in, but %q and %q are", config.Strategy, StrategyPhiAccrual, StrategyDeadline),
		Err:    ErrUnknownStrategy,
	}
}

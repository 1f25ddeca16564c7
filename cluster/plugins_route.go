// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/plugins"
)

// PluginStatus is the status of a plugin of the node, as /v1/plugins shows it.
type PluginStatus struct {
	// Name is the name in the file, Policy what the plugin decides: "downing",
	// "allocation", "join-decider".
	Name   string `json:"name"`
	Policy string `json:"policy"`
	// State is "running", or why there is no process to ask: "starting", "stopping",
	// "waiting" for the next start, "broken" for the time being, "stopped".
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Says is what the plugin declares: name, version, contract, class.
	Says string `json:"says"`
	// SHA256 is the checksum of the running executable.
	SHA256 string `json:"sha256"`
	// PID is the number of the process, 0 if there is none.
	PID int `json:"pid"`
	// Debug says that the process may be held by a debugger: it is not killed when it does not answer.
	Debug bool `json:"debug,omitempty"`
	// Restarts counts the processes that replaced one that had ended, and Swaps those
	// that replaced one for another configuration.
	Restarts uint64 `json:"restarts"`
	Swaps    uint64 `json:"swaps"`
	// FailedInARow counts the failures of processes since the plugin last worked: since one ran for 10 s and there was no
	// failure for a minute.
	FailedInARow int `json:"failed_in_a_row,omitempty"`
	// LastError is why a process last failed, empty if none has.
	LastError string `json:"last_error,omitempty"`
	// AwayTotal is how long in all there was no process, in seconds, and AwayLast how
	// long the last such time was that is over.
	AwayTotal float64 `json:"away_total_seconds"`
	AwayLast  float64 `json:"away_last_seconds"`
	// Calls counts the questions, Failures those without an answer, Late the answers that
	// came after their question was given up, and Resent the questions that were sent again
	// as a whole because the process did not have what they left out.
	Calls    uint64 `json:"calls"`
	Failures uint64 `json:"failures"`
	Late     uint64 `json:"late"`
	Resent   uint64 `json:"resent"`
	// LastCall is the question that has ended last; missing before there is one.
	LastCall *PluginCall `json:"last_call,omitempty"`
	// OutputLeftOut counts the bytes that it printed and that were not logged, since they
	// were more than is logged.
	OutputLeftOut uint64 `json:"output_left_out_bytes"`
}

// PluginCall is a question to a plugin that has ended.
type PluginCall struct {
	// Call is the method of the contract, such as "decide", At when it began, and Seconds how long it took.
	Call    string    `json:"call"`
	At      time.Time `json:"at"`
	Seconds float64   `json:"seconds"`
	// Error is why there is no answer, in at most 200 bytes; empty if there is one.
	Error string `json:"error,omitempty"`
}

func pluginStatus(s plugins.Status) PluginStatus {
	p := PluginStatus{
		Name: s.Name, Policy: string(s.Policy), State: string(s.State), Since: s.Since, Says: s.Manifest.String(), SHA256: s.SHA256, PID: s.PID, Debug: s.Debug,
		Restarts: s.Restarts, FailedInARow: s.FailedInARow, Swaps: s.Swaps, AwayTotal: s.AwayTotal.Seconds(), AwayLast: s.AwayLast.Seconds(),
		Calls: s.Calls, Failures: s.Failures, Late: s.Late, Resent: s.Resent, OutputLeftOut: s.OutputLeftOut,
	}
	if s.LastError != nil {
		p.LastError = s.LastError.Error()
	}
	if last := s.LastCall; last.Name != "" {
		p.LastCall = &PluginCall{Call: last.Name, At: last.At, Seconds: last.Took.Seconds()}
		if last.Err != nil {
			p.LastCall.Error = field.Clip(last.Err.Error())
		}
	}
	return p
}

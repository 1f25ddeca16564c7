// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/quorate/quorate/simulation"
)

// recordingVersion is the format of recordings. Another format is not replayed.
const recordingVersion = 1

// maxHead bounds the first line of a recording, in bytes.
const maxHead = 4096

// head is the first line of a recording: the options with which the run was started. The
// lines below it are those of [simulation.Recording].
type head struct {
	Recording int           `json:"recording"`
	Scenario  string        `json:"scenario"`
	Nodes     int           `json:"nodes"`
	Seed      uint64        `json:"seed"`
	Duration  time.Duration `json:"duration"` // In nanoseconds.
	Settle    time.Duration `json:"settle"`   // In nanoseconds.
}

// begin writes the first line of a recording, if one is made.
func (o Options) begin() error {
	if o.Record == nil {
		return nil
	}
	line, err := json.Marshal(head{
		Recording: recordingVersion, Scenario: o.Scenario, Nodes: o.Nodes, Seed: o.Seed, Duration: o.Duration, Settle: o.Settle,
	})
	if err == nil {
		_, err = o.Record.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("scenario: write recording: %w", err)
	}
	return nil
}

// replayed returns the options of the recorded run, and the recording; without
// one, the options as they are.
func (o Options) replayed() (Options, *simulation.Recording, error) {
	if o.Replay == nil {
		return o, nil, nil
	}
	in := bufio.NewReaderSize(o.Replay, maxHead)
	line, err := in.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
		return o, nil, fmt.Errorf("%w: line 1: it does not say what was run", simulation.ErrRecording)
	case err != nil:
		return o, nil, err
	}
	var h head
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&h); err != nil {
		return o, nil, fmt.Errorf("%w: line 1: %w", simulation.ErrRecording, err)
	}
	if h.Recording != recordingVersion {
		return o, nil, fmt.Errorf("%w: line 1: its form is %d, want %d", simulation.ErrRecording, h.Recording, recordingVersion)
	}
	recording, err := simulation.ReadRecording(in)
	if err != nil {
		return o, nil, fmt.Errorf("below line 1: %w", err)
	}
	o.Scenario, o.Nodes, o.Seed, o.Duration, o.Settle = h.Scenario, h.Nodes, h.Seed, h.Duration, h.Settle
	return o, recording, nil
}

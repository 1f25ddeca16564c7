// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/quorate/quorate/bench/internal/figure"
)

// Measurer measures once.
type Measurer func(context.Context, Spec, *Link) (figure.Outcome, error)

// Server is a peer: it serves until the parent process is gone.
type Server func(context.Context, Spec, *Link) error

// Roles are the parts that processes play in an experiment.
type Roles struct {
	Measurers map[string]Measurer // Roles that measure, and answer with one outcome.
	Servers   map[string]Server   // Roles of the peers of those.
}

// Profile begins a profile of the processor time, if one is wanted, and returns the
// function that ends it.
func Profile(s Spec) (stop func(), err error) {
	if s.Profile == "" {
		return func() {}, nil
	}
	file, err := os.Create(filepath.Join(s.Profile, fmt.Sprintf("%s-%dB-%d.pprof", s.Role, s.Size, os.Getpid())))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close() // The profile is for people, who see that it is cut.
	}, nil
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"log/slog"
	"time"

	"github.com/quorate/quorate/plugins"
)

// Option changes how a plugin is run.
type Option func(*options)

type options struct {
	log      *slog.Logger
	observe  func(plugins.Event)
	dir      string
	version  string
	output   *Output
	launcher func(dir string, log *slog.Logger) (launcher, error)
}

func optionsOf(opts []Option) options {
	o := options{log: slog.New(slog.DiscardHandler), observe: func(plugins.Event) {}, launcher: newLauncher}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithLogger sets the logger for what happens to the plugin and for what it prints,
// each with the plugin's name as "plugin". By default nothing is logged.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithObserver sets a function that gets every [plugins.Event]. It is called from several
// goroutines, and must not block.
func WithObserver(observe func(plugins.Event)) Option {
	return func(o *options) { o.observe = observe }
}

// WithDirectory sets where the directory for the copy of the executable and for sockets
// is made: its file system must permit execution, and its name has at most 60 bytes. By
// default it is the temporary directory of the system.
func WithDirectory(path string) Option { return func(o *options) { o.dir = path } }

// WithOutput sets what keeps the lines that the plugin prints, in place of the log, in which they would be beside what
// the host says.
func WithOutput(o *Output) Option { return func(all *options) { all.output = o } }

// WithHostVersion sets the version of the host's software that plugins are told, for
// their logs. By default there is none.
func WithHostVersion(version string) Option { return func(o *options) { o.version = version } }

// The numbers of the supervision that are not configured: there was no need for other
// values, and each is bounded by one that is configured.
const (
	unhealthyAfter  = 3
	hungAfter       = 3
	breakerFailures = 5
	breakerWindow   = time.Minute
	provedAfter     = 10 * time.Second
	// drainTimeout is the longest call-timeout that can be configured: no call of an
	// old process is cut off by a swap.
	drainTimeout = 5 * time.Second
	// killGrace is how long a process that was told to stop may take.
	killGrace = 3 * time.Second
)

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// A plugin is opened once, and used like any strategy until it is closed.
func Example() {
	//quorate:realtime An example has no test to take a limit from.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	p, err := host.Open(ctx, "witness", plugins.Config{
		Policy:   plugins.Downing,
		Path:     "/opt/quorate/plugins/witness",
		SHA256:   plugins.Checksums{"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
		Settings: map[string]any{"url": "https://witness.internal/vote", "timeout": "2s"},
	}, host.WithLogger(slog.New(slog.DiscardHandler)), host.WithObserver(func(e plugins.Event) {
		if e.Type == plugins.Restarted {
			fmt.Println("nobody decided for", e.Away)
		}
	}))
	if err != nil {
		fmt.Println(err) // The error names the plugin, the file, the fault and the cure.
		return
	}
	defer p.Close(ctx) //nolint:errcheck // The process ends with the host in any case.
	provider, err := p.Downing()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(provider.Class(), p.Status().State)
	// Output:
	// plugin "witness" (/opt/quorate/plugins/witness): not a plugin: there is no such file; look at path; in a file it is relative to that file
}

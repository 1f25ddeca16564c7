// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugins

// Versions of the contract. A host offers all versions that it speaks, a plugin picks the
// highest that both speak.
const (
	Version1 = 1
)

// Host and plugin must have these values in common before they can negotiate. The cookie
// is no secret: it lets a plugin that was started by hand say so, instead of waiting for
// a host.
const (
	// CookieKey is the environment variable that tells a process that it was
	// started as a plugin.
	CookieKey = "QUORATE_PLUGIN"
	// CookieValue is the value of that variable.
	CookieValue = "5d0f5a5b3c5e4d4c9f3a7c1be2a6b8e1"
	// SetName is the name under which a plugin's services are dispensed.
	SetName = "strategy"
	// HostPID is the environment variable in which a host tells a plugin the id of its
	// own process, in decimal. A plugin whose parent is another process ends: its host
	// has died. If it is absent, the plugin goes by the parent that it has at start.
	HostPID = "QUORATE_PLUGIN_HOST_PID"
	// HealthService is the service that the host names to the health service of a plugin.
	HealthService = "plugin"
)

// Limits of the contract. Both sides keep them.
const (
	// MaxRequestBytes is the largest request: 16 MiB. A view of 20,000 members with
	// ten complaints each, or a request about 300,000 shards, is less than a third.
	MaxRequestBytes = 16 << 20
	// MaxAnswerBytes is the largest answer: 4 MiB. Placements for 300,000 shards fit. It
	// bounds what a faulty plugin can make a host allocate for one call.
	MaxAnswerBytes = 4 << 20
	// MaxReasonsBytes bounds the sum of all reasons of one answer: 1 MiB.
	MaxReasonsBytes = 1 << 20
	// MaxSettingsBytes bounds the settings of a plugin as JSON: 1 MiB.
	MaxSettingsBytes = 1 << 20
	// MaxSchemaBytes bounds the schema of a plugin's settings: 64 KiB. A setting with its
	// description takes some 150 bytes.
	MaxSchemaBytes = 64 << 10
	// MaxCalls is how many calls a plugin serves at one time. A host waits for one; the
	// others are calls that it has given up.
	MaxCalls = 16
)

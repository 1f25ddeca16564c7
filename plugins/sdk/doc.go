// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package sdk serves a strategy as a plugin: a program that a cluster starts, asks
// and stops.
//
//	type settings struct {
//		URL     string
//		Timeout time.Duration
//	}
//
//	func main() {
//		sdk.Serve(
//			sdk.Downing(func(s settings) (downing.Provider, error) { return newWitness(s) }),
//			sdk.WithName("witness"), sdk.WithVersion("1.0.0"))
//	}
//
// The strategy is an ordinary value of the interface of its kind, such as [downing.Provider] or
// [allocation.Strategy], and the rest is done here: handshake, settings, limits,
// logs, panics, and the end of the process.
//
// # Settings
//
// The keys under plugins.<name>.settings in the cluster's file are decoded into the type
// of the argument, strictly: an unknown key, a value of another type or one that does not
// fit is refused with its key, all of them together. The key of a field is the name in
// its json tag, or else its name in lower case with hyphens: BaseURL is base-url.
// Durations are text such as "3s", and types with UnmarshalText are read from text. A
// method SetDefaults() of the pointer sets defaults, and a method Validate() error has
// the last word; if its errors have a method Field() string, the fault is reported with
// that key.
//
// Tags of a field say more, as they do for the settings of Quorate itself: required:"yes",
// oneof:"a|b" for a text, range:"1..10" for a number or a duration, unit:"bytes",
// known:"auto" for texts with a meaning of their own, and meaning:"..." for what the
// setting is for. For lists and maps they are about the items. Of the type, the tags and
// the defaults a JSON Schema is made, which hosts ask for before they configure the plugin:
// they check the settings by it, and tools show it. A method JSONSchema() []byte of the
// settings returns another one.
//
// # Logs
//
// [Serve] makes a logger the default of log/slog whose records appear in the node's log
// with the name of the plugin and the message as the attribute text. Standard output
// belongs to the handshake; anything printed there later is lost.
//
// # Life cycle
//
//	started by hand ─▶ says so, exit code 2
//	started by a host ─▶ handshake ─▶ configured ─▶ calls … ─▶ host says stop, exit code 0
//	                                                       ├─▶ SIGTERM: calls end within 1 s, exit code 0
//	                                                       └─▶ the host has died, exit code 0
//
// Interrupts (SIGINT) are ignored: a terminal sends them to a node and to its plugins,
// which the node stops in its own order.
//
// # Concurrency
//
// Calls come on several goroutines. A host waits for one at a time, but a call that it
// has given up may still be running when the next comes. A strategy stops working when
// its context ends; after [plugins.MaxCalls] calls that do not, further ones are refused.
//
// # Guarantees
//
// A panic of the strategy fails that call only; the stack goes to the log.
//
// Processes that a strategy starts end with the plugin: the host ends them, and if the
// host is killed on Linux, a guard does, which needs /bin/sh and is started at most 200
// ms after the first of them. In that case a process that has left the process group
// (setsid) lives on until the next host starts.
package sdk

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry has the spans and the metrics of sharding. It reads nothing by itself: the metrics are shown from
// what the system has collected, and a span is begun where a message is sent or handled. Everything is safe for
// concurrent use.
package telemetry

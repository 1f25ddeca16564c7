// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package mutual is mutual TLS whose certificates can be replaced while the
// program runs: both ends show a certificate, and both look at it by what the
// files say now, not by what they said when the program started.
//
//	files, err := mutual.Open(names, notify)
//	go files.Watch(ctx)
//	listener = tls.NewListener(listener, files.TLS().Server("http/1.1"))
//
// # When files change
//
//	certificate and key    shown from the next handshake on; connections go on
//	authorities            checked at the next handshake, and for connected peers
//	revocations            likewise
//
// The files are looked at (their size, time and identity) at each handshake, and
// by [Files.Watch] every five seconds. New content counts only when it is good: a
// key that fits its certificate, a certificate that is valid today, authorities
// that can be parsed, revocations that an authority has signed. Until then the
// last good content stays in use, and the fault is notified once; the two halves
// of a pair are written one after the other, so that a fault may be over soon.
//
// # Connected peers
//
// A handshake checks a peer once. When authorities or revocations have changed,
// [TLS.Guard] checks connected peers again, before it hands on any more of their bytes: a
// connection whose certificate would no longer be accepted ends. A certificate that
// merely expires during a connection does not end it.
//
// # Revocation
//
// Revocation lists are files in the form of RFC 5280, PEM or DER, each signed by
// one of the authorities. A list that is older than its next update still counts:
// what it revokes is revoked. Nothing is asked over the network.
//
// All functions and methods are safe for concurrent use. No goroutine is started.
package mutual

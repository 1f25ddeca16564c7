// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package gate is the listener behind which every port of a node stands: that of the transport, of the
// gateway, of management and of health checks. It decides which connections have a place.
//
//	accepted ──> pending ──Admit──> admitted ──> closed
//	                ^ └─gives way──>───┼──────────^
//	                └──────Rest────────┘
//
// A connection is pending until the owner of the port knows who speaks on it, and says so ([Conn.Admit]). What
// came on it before that protects nothing: when places are short the pending connection that is oldest gives way to the
// newest, of the IP address that has most. An admitted connection never gives way. Pending and admitted
// connections are counted apart, in all and by IP address, and few bytes are read from one that is pending.
//
// All methods may be called from any goroutine.
package gate

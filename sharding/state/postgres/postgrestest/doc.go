// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package postgrestest starts servers of PostgreSQL for tests and benchmarks, as the distribution packages
// them: with data in a directory of their own, reached by a socket there and by nothing else.
//
//	server, err := postgrestest.Start(t.Context())
//	require.NoError(t, err)
//	t.Cleanup(func() { require.NoError(t, server.Close()) })
//	pool, err := pgxpool.New(t.Context(), server.Connection())
//
// # Life cycle
//
// [Start] makes a directory for temporary files, the data and a process. [Server.Crash] ends the process as a crash
// does, [Server.Run] starts it again over the same data, and [Server.Close] ends it and takes the directory
// away. Who does not close a server leaves both behind, also when a test is ended by its time limit.
//
// # Guarantees and limits
//
// Everybody who can open the directory may connect, as the user of [Server.Connection]; it is open to nobody but the
// user of the process. PostgreSQL refuses to run as root: there it runs as the user postgres, else nobody. The server
// keeps what it has confirmed over a crash, unless a setting such as fsync=off says otherwise. Its methods are for one
// goroutine at a time; connections are not limited so.
package postgrestest

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package configtest tells whether a format of configuration files keeps the contract of
// [config.Format].
//
// [TestFormat] runs the suite; the test gives it the format, and a function that writes in
// the notation of the format. [CheckText] is for the fuzz test of a format. What the suite
// draws and writes can be used alone: [RandomTree] and [Flow].
package configtest

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package strays ends processes that a plugin has left behind outside of its process
// group.
//
// A process that calls setsid or setpgid leaves the group of its plugin, so that a signal
// to the group does not reach it. It still has the environment of the plugin, which names
// the directory of the plugin's socket, and no two launches share one. [Kill] ends all
// processes of this user whose environment names a given directory.
//
// Beyond its reach are processes that have changed their environment or their user, and
// all of them on systems other than Linux. It is an aid against forgotten children, and no
// wall against a plugin that means to stay: for that there are containers.
package strays

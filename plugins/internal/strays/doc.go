// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package strays ends what the process of a plugin has left behind outside of its
// process group.
//
// A process that calls setsid or setpgid leaves the group of its plugin, so that a
// signal to the group does not reach it. It still has the environment that the plugin
// was started with, in which the directory of its socket is named, and no two launches
// share one. [Kill] ends all processes of this user that name it.
//
// Beyond its reach are processes that have changed their environment or their user, and
// all of them on systems other than Linux. It is an aid against forgotten children, and no
// wall against a plugin that means to stay: for that there are containers.
package strays

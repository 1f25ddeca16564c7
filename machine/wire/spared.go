// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Path is where a field is: the numbers of the messages around it, from the frame inwards, and its own.
type Path = []Number

// SparedField is a field without which a node does what the others expect of it, so that the release before it, which
// lacks it, may be in one cluster with a later one. Worlds of several releases draw from lists of them.
type SparedField struct {
	Name  string // As in the document of the messages: "Heartbeat.shared".
	Paths []Path // Several when its message is inside several others.
}

// Spared returns the spared field with a name at paths.
func Spared(name string, paths ...Path) SparedField { return SparedField{name, paths} }

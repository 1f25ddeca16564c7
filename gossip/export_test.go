// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

// SetUnknown is an edit as a later release makes it: self says something in fields that this one does not know.
func (e *Edit) SetUnknown(fields string) bool {
	old := e.after.Member(e.self)
	if old == nil || old.Unknown.Fields == fields {
		return false
	}
	m := *old
	m.Unknown = Unknown{Version: old.Unknown.Version + 1, Fields: fields}
	e.replaceMember(&m)
	return true
}

// SetUnknownRegisters is an edit of a leader of a later release.
func (e *Edit) SetUnknownRegisters(fields string) {
	next := e.after.unknown.value.Version + 1
	e.after.unknown.raise(Unknown{Version: next, Fields: fields})
	e.touch(KeyRegisters, NodeID{})
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

// Deletes put tombstones into the table, which fall with a sweep when all replicas that count hold them.

// putTombstone puts the tombstone of a delete into the table of this replica, and reports whether that could be done.
func (s *ops) putTombstone(o *op) bool {
	k := s.known
	entry, err := k.table.Delete(o.key, k.gen())
	if err != nil {
		s.report(o, Done{Op: o.id, Verdict: Refused, Err: err})
		return false
	}
	s.lags.receivedEntry(entry)
	o.stage, o.entry, o.exists = storing, entry, true
	return true
}

// redoDelete makes a delete anew whose tombstone has fallen with a sweep that may be earlier than the delete: the
// others may have taken values in since, and what they confirmed is no word about these.
func (s *ops) redoDelete(o *op) bool {
	o.marked, o.fell, o.stamp = false, false, s.known.gen()
	clear(o.stored)
	return s.putTombstone(o)
}

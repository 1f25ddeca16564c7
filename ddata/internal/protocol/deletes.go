// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

// Deletes put tombstones into the table; a sweep drops a tombstone when all replicas that count hold it.

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

// redoDelete makes a delete again whose tombstone was dropped by a sweep that may have been decided before the delete
// began: the other replicas may have taken in values since, which what they confirmed does not cover.
func (s *ops) redoDelete(o *op) bool {
	o.marked, o.fell, o.stamp = false, false, s.known.gen()
	clear(o.stored)
	return s.putTombstone(o)
}

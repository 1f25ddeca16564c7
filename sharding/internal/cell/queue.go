// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

// queue is a list of messages through their next field. The zero value is empty.
type queue struct {
	head, tail *Message
	n, bytes   int
}

func (q *queue) push(m *Message) {
	m.next = nil
	if q.tail == nil {
		q.head = m
	} else {
		q.tail.next = m
	}
	q.tail = m
	q.n++
	q.bytes += m.cost()
}

func (q *queue) pop() *Message {
	m := q.head
	if m == nil {
		return nil
	}
	if q.head = m.next; q.head == nil {
		q.tail = nil
	}
	m.next = nil
	q.n--
	q.bytes -= m.cost()
	return m
}

// insert keeps the queue sorted by sequence number. It reports whether m was
// inserted: a message with an equal number is there already otherwise.
func (q *queue) insert(m *Message) bool {
	if q.tail == nil || q.tail.Seq < m.Seq {
		q.push(m)
		return true
	}
	at := &q.head
	for (*at).Seq < m.Seq {
		at = &(*at).next
	}
	if (*at).Seq == m.Seq {
		return false
	}
	m.next, *at = *at, m
	q.n++
	q.bytes += m.cost()
	return true
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"github.com/quorate/quorate/machine/wire"
)

// What travels between nodes: a frame is a row of messages and signals, each a field of the
// frame. A message without a topic is of the topic of the message before it, so that a row
// of messages of one topic names it once.

// The bounds of names, in bytes, and of frames.
const (
	maxName   = 255
	maxGroups = 1024 // Of one message.
)

// The fields of a frame, of a message, and of a signal.
const (
	fieldMessage = 1
	fieldSignal  = 2

	messageTopic  = 1
	messageData   = 2
	messageGroup  = 3
	messageNarrow = 4

	signalTopic = 1
	signalState = 2
)

// message is one message to one node.
type message struct {
	topic  string
	data   []byte
	groups []string // The groups of which one receiver on the node gets the message.
	narrow bool     // The subscribers on the node that are in no group do not get it.
}

// reading is the decoder of a frame. It is made once for all messages of a frame: fields and messages of two bytes each
// are cheap to send.
type reading struct {
	message     message
	field, part wire.Field
	signal      signal
}

// signal is a signal about a topic.
type signal struct {
	topic string
	state state
}

// state says whether the subscribers of a topic on a node have room.
type state uint8

const (
	open     state = iota // They have room.
	blocking              // A publisher is to wait.
	failing               // A publisher is to be told an error.

	maxState = failing
)

// appendMessage appends a message. Last is the topic of the message before it in the frame.
func appendMessage(b []byte, m *message, last string) []byte {
	topic := m.topic
	if topic == last {
		topic = ""
	}
	size := sizeOf(messageTopic, len(topic)) + m.size()
	b = wire.AppendVarint(wire.AppendTag(b, fieldMessage, wire.BytesType), uint64(size))
	b = wire.AppendString(b, messageTopic, topic)
	b = wire.AppendBytes(b, messageData, m.data)
	for _, g := range m.groups {
		b = wire.AppendString(b, messageGroup, g)
	}
	return wire.AppendBool(b, messageNarrow, m.narrow)
}

// size returns the size of a message without its topic.
func (m *message) size() int {
	size := sizeOf(messageData, len(m.data)) + wire.SizeBool(messageNarrow, m.narrow)
	for _, g := range m.groups {
		size += wire.SizeBytes(messageGroup, len(g))
	}
	return size
}

// sizeOf returns the size of a field that is left out when it is empty.
func sizeOf(n wire.Number, size int) int {
	if size == 0 {
		return 0
	}
	return wire.SizeBytes(n, size)
}

// appendSignal appends a signal about a topic.
func appendSignal(b []byte, topic string, s state) []byte {
	b, at := wire.Begin(b, fieldSignal)
	b = wire.AppendString(b, signalTopic, topic)
	b = wire.AppendUint(b, signalState, uint64(s))
	return wire.End(b, at)
}

// receiver is called with the contents of a frame. The message and its data are valid during the call
// only.
type receiver interface {
	message(m *message)
	signal(topic string, s state)
}

// readFrame reads a frame. It ends at the first thing that means nothing; what came before
// was taken. Fields of a later version are passed over.
func readFrame(b []byte, to receiver) (err error) {
	var r reading
	for len(b) > 0 {
		if r.field, b, err = wire.Next(b); err != nil {
			return err
		}
		switch r.field.Number {
		case fieldMessage:
			if err = r.readMessage(); err == nil {
				to.message(&r.message)
			}
		case fieldSignal:
			if err = r.readSignal(); err == nil {
				to.signal(r.signal.topic, r.signal.state)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// each calls set for each field of the message in a field.
func (r *reading) each(set func(*wire.Field) error) error {
	b, err := r.field.Data(len(r.field.Bytes))
	for err == nil && len(b) > 0 {
		if r.part, b, err = wire.Next(b); err == nil {
			err = set(&r.part)
		}
	}
	return err
}

// readMessage reads a message, with the topic of the one before if it has none.
func (r *reading) readMessage() error {
	m := &r.message
	m.data, m.narrow = nil, false
	m.groups = m.groups[:0]
	err := r.each(m.set)
	if err == nil && m.topic == "" {
		err = wire.Malformed("a message has no topic")
	}
	return err
}

// set reads a field of a message.
func (m *message) set(f *wire.Field) (err error) {
	switch f.Number {
	case messageTopic:
		return readName(&m.topic, f)
	case messageData:
		m.data, err = f.Data(len(f.Bytes))
		return err
	case messageGroup:
		if len(m.groups) == maxGroups {
			return wire.Malformed("a message has more than %d groups", maxGroups)
		}
		m.groups = append(m.groups, "")
		return readName(&m.groups[len(m.groups)-1], f)
	case messageNarrow:
		return wire.SetBool(&m.narrow, f)
	default:
		return nil
	}
}

// readSignal reads a signal.
func (r *reading) readSignal() error {
	r.signal = signal{}
	err := r.each(r.signal.set)
	if err == nil && r.signal.topic == "" {
		err = wire.Malformed("a signal has no topic")
	}
	return err
}

// set reads a field of a signal.
func (s *signal) set(f *wire.Field) error {
	switch f.Number {
	case signalTopic:
		return readName(&s.topic, f)
	case signalState:
		return wire.Set(&s.state, f, uint64(maxState))
	default:
		return nil
	}
}

// readName reads the name of a topic or a group.
func readName(dst *string, f *wire.Field) error {
	// Most messages have the topic of the one before: no new text is made for it.
	if f.Type == wire.BytesType && string(f.Bytes) == *dst && *dst != "" {
		return nil
	}
	if err := wire.SetName(dst, f, maxName); err != nil {
		return err
	}
	if *dst == "" {
		return wire.Malformed("an empty name")
	}
	return nil
}

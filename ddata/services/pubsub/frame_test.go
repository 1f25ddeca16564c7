// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"slices"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/machine/wire"
)

// heard keeps what was read of a frame.
type heard struct {
	messages []message
	signals  []state
	topics   []string
}

func (h *heard) message(m *message) {
	h.messages = append(h.messages, message{m.topic, slices.Clone(m.data), slices.Clone(m.groups), m.narrow})
}

func (h *heard) signal(topic string, s state) {
	h.topics, h.signals = append(h.topics, topic), append(h.signals, s)
}

// frame encodes messages as a peer does.
func frame(messages []message) (b []byte) {
	last := ""
	for i := range messages {
		b = appendMessage(b, &messages[i], last)
		last = messages[i].topic
	}
	return b
}

func TestAFrameIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want heard
		name := rapid.StringOfN(rapid.RuneFrom([]rune{' '}, unicode.PrintRanges...), 1, 5, maxName)
		want.messages = rapid.SliceOf(rapid.Custom(func(t *rapid.T) message {
			m := message{topic: rapid.SampledFrom([]string{"a", "b", name.Draw(t, "topic")}).Draw(t, "which"), narrow: rapid.Bool().Draw(t, "narrow")}
			if data := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data"); len(data) > 0 {
				m.data = data
			}
			m.groups = append(m.groups, rapid.SliceOfN(name, 0, 3).Draw(t, "groups")...)
			return m
		})).Draw(t, "messages")
		b := frame(want.messages)
		for range rapid.IntRange(0, 3).Draw(t, "signals") {
			topic, s := name.Draw(t, "topic"), state(rapid.IntRange(0, int(maxState)).Draw(t, "state"))
			want.signal(topic, s)
			b = appendSignal(b, topic, s)
		}
		var got heard
		require.NoError(t, readFrame(b, &got))
		require.Len(t, got.messages, len(want.messages))
		for i := range want.messages {
			require.Equal(t, want.messages[i].topic, got.messages[i].topic)
			require.Equal(t, string(want.messages[i].data), string(got.messages[i].data))
			require.True(t, slices.Equal(want.messages[i].groups, got.messages[i].groups))
			require.Equal(t, want.messages[i].narrow, got.messages[i].narrow)
		}
		require.Equal(t, want.signals, got.signals)
		require.Equal(t, want.topics, got.topics)
	})
}

// Nodes of several versions talk to each other.
func TestTheBytesOfAFrame(t *testing.T) {
	b := frame([]message{{topic: "a", data: []byte("x")}, {topic: "a", data: []byte("y"), groups: []string{"g"}, narrow: true}, {topic: "b"}})
	b = appendSignal(b, "a", blocking)
	b = appendSignal(b, "a", open)
	require.Equal(t, "\x0a\x06\x0a\x01a\x12\x01x"+"\x0a\x08\x12\x01y\x1a\x01g\x20\x01"+"\x0a\x03\x0a\x01b"+"\x12\x05\x0a\x01a\x10\x01"+"\x12\x03\x0a\x01a", string(b))
}

func TestWhatIsMalformedIsRefused(t *testing.T) {
	long := string(make([]byte, maxName+1))
	for name, b := range map[string]string{
		"a message without a topic": "\x0a\x03\x12\x01x",
		"an empty topic":            "\x0a\x02\x0a\x00",
		"a topic that is too long":  "\x0a\x83\x02\x0a\x80\x02" + long,
		"a topic that is no text":   "\x0a\x03\x0a\x01\xff",
		"a topic of two lines":      "\x0a\x05\x0a\x03a\x0ab",
		"a topic that turns around": "\x0a\x05\x0a\x03\u202e",
		"an empty group":            "\x0a\x05\x0a\x01a\x1a\x00",
		"a signal without a topic":  "\x12\x02\x10\x01",
		"an unknown signal":         "\x12\x05\x0a\x01a\x10\x03",
		"a message cut off":         "\x0a\x06\x0a\x01a\x12\x01",
		"a message that is none":    "\x08\x01",
	} {
		require.ErrorIs(t, readFrame([]byte(b), &heard{}), wire.ErrMalformed, name)
	}
	groups := message{topic: "a", groups: slices.Repeat([]string{"g"}, maxGroups+1)}
	require.ErrorIs(t, readFrame(frame([]message{groups}), &heard{}), wire.ErrMalformed)
	groups.groups = groups.groups[1:]
	var got heard
	require.NoError(t, readFrame(append(frame([]message{groups}), "\xaa\x06\x01x"...), &got), "fields of a later version are passed over")
	require.Len(t, got.messages[0].groups, maxGroups)
}

func FuzzReadFrame(f *testing.F) {
	f.Add(frame([]message{{topic: "a", data: []byte("x")}, {topic: "a", groups: []string{"g", "h"}, narrow: true}}))
	f.Add(appendSignal(nil, "a", failing))
	f.Add([]byte("\x0a\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var got heard
		if err := readFrame(b, &got); err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
		}
		again := frame(got.messages)
		for i, topic := range got.topics {
			again = appendSignal(again, topic, got.signals[i])
		}
		var same heard
		require.NoError(t, readFrame(again, &same))
		require.Len(t, same.messages, len(got.messages))
		for i := range got.messages {
			require.Equal(t, got.messages[i].topic, same.messages[i].topic)
			require.Equal(t, string(got.messages[i].data), string(same.messages[i].data))
		}
		require.Equal(t, got.signals, same.signals)
	})
}

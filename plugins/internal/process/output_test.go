// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine/meter"
)

// record returns an output, and the buffer into which it logs, without times.
func record() (*output, *bytes.Buffer) {
	var b bytes.Buffer
	h := slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug - 4, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	return newOutput(slog.New(h), "stderr", nil, nil), &b
}

func TestLinesAreTranslated(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"words\n", "level=INFO msg=\"the plugin prints\" text=words stream=stderr\n"},
		{"no end", "level=INFO msg=\"the plugin prints\" text=\"no end\" stream=stderr\n"},
		{"\n\n  \n", ""},
		{"a\x1b[31mb\xff\u202ec\r\n", "level=INFO msg=\"the plugin prints\" text=\"a [31mb? c\" stream=stderr\n"},
		{`{"@level":"error","@message":"m","@module":"x","@timestamp":"t","b":"1","a":2}` + "\n", "level=ERROR msg=\"the plugin logs\" text=m with.a=2 with.b=1\n"},
		{`{"@level":"trace","@message":"m"}` + "\n", "level=DEBUG-4 msg=\"the plugin logs\" text=m\n"},
		{`{"@level":"loud","@message":"m"}` + "\n", "level=INFO msg=\"the plugin prints\" text=\"{\\\"@level\\\":\\\"loud\\\",\\\"@message\\\":\\\"m\\\"}\" stream=stderr\n"},
		{`{"@level":"warn","@message":7}` + "\n", "level=INFO msg=\"the plugin prints\" text=\"{\\\"@level\\\":\\\"warn\\\",\\\"@message\\\":7}\" stream=stderr\n"},
		// Output that looks like a decision of the node stays text of the plugin.
		{`{"@level":"info","@message":"decision","node":"10.0.0.1:7946","verdict":"down"}` + "\n", "level=INFO msg=\"the plugin logs\" text=decision with.node=10.0.0.1:7946 with.verdict=down\n"},
		{"{\n", "level=INFO msg=\"the plugin prints\" text={ stream=stderr\n"},
		{"panic: boom\n\ngoroutine 1\n", "level=ERROR msg=\"the plugin prints\" text=\"panic: boom\" stream=stderr\nlevel=ERROR msg=\"the plugin prints\" text=\"goroutine 1\" stream=stderr\n"},
	} {
		o, b := record()
		_, err := io.WriteString(o, c.in)
		require.NoError(t, err)
		require.NoError(t, o.Close())
		require.Equal(t, c.want, b.String(), "%q", c.in)
	}
}

// spans is a handler that adds the span of a line, as bridges to OpenTelemetry do.
type spans struct{ slog.Handler }

func (s spans) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(meter.TraceIDs(ctx)...)
	return s.Handler.Handle(ctx, r)
}

// A line that names a trace is logged as one of that; what is no trace stays an attribute of the plugin.
func TestLinesAreOfTheTraceThatTheyName(t *testing.T) {
	for in, want := range map[string]string{
		`"trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331","a":1`: "with.a=1 trace_id=0af7651916cd43dd8448eb211c80319c span_id=b7ad6b7169203331",
		`"trace_id":"0af7","span_id":7`: "with.span_id=7 with.trace_id=0af7",
	} {
		o, b := record()
		o.log = slog.New(spans{o.log.Handler()})
		_, err := io.WriteString(o, `{"@level":"info","@message":"m",`+in+"}\n")
		require.NoError(t, err)
		require.NoError(t, o.Close())
		require.Equal(t, "level=INFO msg=\"the plugin logs\" text=m "+want+"\n", b.String())
	}
}

// Lines that somebody else takes are not logged, and their rate is that of the log.
func TestLinesAreTakenInPlaceOfTheLog(t *testing.T) {
	o, b := record()
	var taken []string
	o.printed = func(line string) { taken = append(taken, line) }
	_, err := io.WriteString(o, "one\n\n{\"@level\":\"warn\",\"@message\":\"t\\u0007wo\"}\nth\x1bree"+strings.Repeat("\nmore", linesBurst))
	require.NoError(t, err)
	require.NoError(t, o.Close())
	require.Equal(t, []string{"one", `{"@level":"warn","@message":"t\u0007wo"}`, "th ree", "more"}, taken[:4])
	require.Len(t, taken, linesBurst)
	require.Equal(t, "level=WARN msg=\"the plugin printed more than is logged\" stream=stderr lines_left_out=3 bytes_left_out=12\n", b.String())
}

// The lines that are logged do not depend on the pieces in which a stream arrives.
func TestPiecesDoNotMatter(t *testing.T) {
	whole, want := record()
	text := "one\ntwo\n{\"@level\":\"warn\",\"@message\":\"three\"}\n"
	_, err := io.WriteString(whole, text)
	require.NoError(t, err)
	byByte, got := record()
	for i := range text {
		_, err := io.WriteString(byByte, text[i:i+1])
		require.NoError(t, err)
	}
	require.Equal(t, want.String(), got.String())
}

func TestLongLineIsCut(t *testing.T) {
	o, b := record()
	for range 10 << 10 {
		_, err := io.WriteString(o, strings.Repeat("x", 1<<10))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, cap(o.line), 2*maxLineBytes)
	require.Len(t, o.Tail(), tailBytes)
	require.NoError(t, o.Close())
	require.Contains(t, b.String(), fmt.Sprintf("bytes_left_out=%d", 10<<20-maxLineBytes))
}

// Of a record with many keys only the first maxAttributes are logged.
func TestAttributesAreLimited(t *testing.T) {
	o, b := record()
	var keys strings.Builder
	for i := range 2 * maxAttributes {
		fmt.Fprintf(&keys, `,"key%d":1`, i)
	}
	_, err := io.WriteString(o, `{"@level":"info","@message":"m"`+keys.String()+"}\n")
	require.NoError(t, err)
	require.Equal(t, maxAttributes, strings.Count(b.String(), "with.key"))
}

func TestRateIsLimitedAndTheRestCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, b := record()
		for range linesBurst + 50 {
			_, err := io.WriteString(o, "line\n")
			require.NoError(t, err)
		}
		require.Equal(t, linesBurst, strings.Count(b.String(), "text=line"))
		<-time.After(time.Second)
		_, err := io.WriteString(o, "later\n")
		require.NoError(t, err)
		require.Contains(t, b.String(), "lines_left_out=50 bytes_left_out=200\nlevel=INFO msg=\"the plugin prints\" text=later")
		for range linesPerSecond + 10 {
			_, err := io.WriteString(o, "again\n")
			require.NoError(t, err)
		}
		require.Equal(t, linesPerSecond-1, strings.Count(b.String(), "text=again"))
		require.NoError(t, o.Close())
		require.Contains(t, b.String(), "lines_left_out=11 bytes_left_out=55")
	})
}

// The rate of output is limited in bytes as well, for plugins that print long lines: after a
// burst the log takes so many a second, and says now and then that the plugin printed more.
func TestBytesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, b := record()
		line := strings.Repeat("x", 8<<10) + "\n"
		const seconds = 60
		for range seconds * 10 {
			for range 10 {
				_, err := io.WriteString(o, line)
				require.NoError(t, err)
			}
			<-time.After(time.Second / 10)
		}
		require.NoError(t, o.Close())
		require.LessOrEqual(t, b.Len(), (bytesBurst+seconds*bytesPerSecond)*11/10)
		require.GreaterOrEqual(t, b.Len(), bytesBurst+(seconds-1)*bytesPerSecond)
		require.LessOrEqual(t, strings.Count(b.String(), "printed more"), seconds/10+2)
	})
}

// No output of a plugin makes the host panic, or brings escape sequences into its log.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("words\n{\"@level\":\"warn\",\"@message\":7}\n"))
	f.Add([]byte(`{"@level":"info","@message":"m","a":{"b":[1,null]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		o, b := record()
		n, err := o.Write(text)
		require.NoError(t, err)
		require.Equal(t, len(text), n)
		require.NoError(t, o.Close())
		require.NotContains(t, b.String(), "\x1b")
	})
}

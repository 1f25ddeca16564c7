// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// shaded is a picture of more colours than a palette has: a dark half, and shades.
func shaded(t *testing.T) []byte {
	t.Helper()
	full := image.NewRGBA(image.Rect(0, 0, 64, 64))
	for y := range 64 {
		for x := range 64 {
			c := color.RGBA{20, 20, 24, 255}
			if x > 32 {
				c = color.RGBA{uint8(x * 4), uint8(y * 4), 128, 255}
			}
			full.SetRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, full))
	return b.Bytes()
}

// What is most of a picture keeps its colour, and nothing is far from what it was.
func TestAPictureKeepsItsColours(t *testing.T) {
	text := shaded(t)
	small, err := shrink(text)
	require.NoError(t, err)
	was, err := png.Decode(bytes.NewReader(text))
	require.NoError(t, err)
	is, err := png.Decode(bytes.NewReader(small))
	require.NoError(t, err)
	require.LessOrEqual(t, len(is.(*image.Paletted).Palette), maxColours)
	require.Greater(t, len(is.(*image.Paletted).Palette), maxColours/8)
	require.Equal(t, was.At(3, 3), is.At(3, 3))
	each(was, func(x, y int, c color.RGBA) {
		require.LessOrEqual(t, distance(c, color.RGBAModel.Convert(is.At(x, y)).(color.RGBA)), 24)
	})
}

func TestPicturesAreCopiedUnlessOneIsTooLarge(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(from, "a.png"), shaded(t), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(from, "b.svg"), []byte("<svg/>"), 0o600))
	require.NoError(t, run(from, to))
	text, err := os.ReadFile(filepath.Join(to, "b.svg"))
	require.NoError(t, err)
	require.Equal(t, "<svg/>", string(text))
	require.FileExists(t, filepath.Join(to, "a.png"))
	require.NoError(t, os.WriteFile(filepath.Join(from, "c.svg"), make([]byte, maxBytes+1), 0o600))
	require.ErrorContains(t, run(from, to), "c.svg has 153601 bytes")
	require.NoError(t, os.WriteFile(filepath.Join(from, "a.png"), []byte("no picture"), 0o600))
	require.ErrorContains(t, run(from, to), "a.png: ")
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command shrink copies pictures of screens from one directory into another, with at most 256 colours each, which is a
// third of the bytes. It refuses one that is larger than a document should load.
//
//	go run ./tools/internal/shrink FROM TO
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxBytes   = 150 << 10
	maxColours = 256
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: shrink FROM TO")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "shrink:", err)
		os.Exit(1)
	}
}

// run copies all pictures of a directory.
func run(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		if strings.HasSuffix(e.Name(), ".png") {
			if text, err = shrink(text); err != nil {
				return fmt.Errorf("%s: %w", e.Name(), err)
			}
		}
		if len(text) > maxBytes {
			return fmt.Errorf("%s has %d bytes, at most %d are for a document", e.Name(), len(text), maxBytes)
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), text, 0o644); err != nil {
			return err
		}
		fmt.Printf("%s %d\n", e.Name(), len(text))
	}
	return nil
}

// shrink encodes a picture with a palette.
func shrink(text []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	colours := palette(full)
	nearest := map[color.RGBA]uint8{} // Most pixels have one of few colours.
	small := image.NewPaletted(full.Bounds(), colours)
	each(full, func(x, y int, c color.RGBA) {
		i, known := nearest[c]
		if !known {
			i = uint8(colours.Index(c))
			nearest[c] = i
		}
		small.SetColorIndex(x, y, i)
	})
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, small)
	return b.Bytes(), err
}

// palette returns the colours by which a picture is drawn: the most frequent ones that differ from each other by
// more than a distance, the least distance with which they are few enough. Smoothed edges of letters have thousands.
func palette(full image.Image) color.Palette {
	counts := map[color.RGBA]int{}
	each(full, func(_, _ int, c color.RGBA) { counts[c]++ })
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B), cmp.Compare(a.A, b.A))
	})
	for least := 0; ; least++ {
		var chosen []color.RGBA
		var palette color.Palette
		for _, c := range colours {
			if !slices.ContainsFunc(chosen, func(o color.RGBA) bool { return distance(c, o) <= least }) {
				chosen, palette = append(chosen, c), append(palette, c)
			}
			if len(chosen) > maxColours {
				break
			}
		}
		if len(chosen) <= maxColours {
			return palette
		}
	}
}

// distance is how far two colours are apart, in the channel in which they differ most; 0 for the same colour.
func distance(a, b color.RGBA) int {
	apart := func(x, y uint8) int { return max(int(x), int(y)) - min(int(x), int(y)) }
	if a == b {
		return 0
	}
	return max(apart(a.R, b.R), apart(a.G, b.G), apart(a.B, b.B), apart(a.A, b.A))
}

// each calls f for every pixel.
func each(of image.Image, f func(x, y int, c color.RGBA)) {
	bounds := of.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			r, g, b, a := of.At(x, y).RGBA() // 16 bits each.
			f(x, y, color.RGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: uint8(a >> 8)})
		}
	}
}

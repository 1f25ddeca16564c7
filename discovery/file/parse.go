// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/quorate/quorate/discovery"
)

// faultsShown is how many bad lines an error shows, enough to see what they have in common.
const faultsShown = 10

// byteOrderMark begins files of some editors.
var byteOrderMark = []byte("\xef\xbb\xbf") //nolint:gochecknoglobals // A constant of three bytes.

// parse reads the content of a file, which is whole only if it ends with the end of a
// line: the beginning of an address is often an address too.
func parse(content []byte) ([]discovery.Target, error) {
	content = bytes.TrimPrefix(content, byteOrderMark)
	switch {
	case len(content) == 0:
		return nil, errors.New("it is empty, write a comment where there are no contact points")
	case content[len(content)-1] != '\n':
		return nil, errors.New("its last line does not end: it is cut off, or needs a newline")
	}
	var list []discovery.Target
	var faults []error
	number := 0
	for line := range bytes.Lines(content) {
		number++
		text, _, _ := bytes.Cut(line, []byte("#"))
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		target, err := discovery.ParseTarget(string(text))
		if err == nil {
			list = append(list, target)
			continue
		}
		faults = append(faults, fmt.Errorf("line %d: %w", number, err))
		if len(faults) == faultsShown {
			break
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return discovery.Distinct(list)
}

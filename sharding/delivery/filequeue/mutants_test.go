// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package filequeue_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects of what is on the disk makes a test fail.
func TestMutantsAreCaught(t *testing.T) {
	const model, cut, damaged = "TestTheQueueIsItsModel", "TestAWriteThatWasCutOff", "TestADamagedFile"
	var all []simulationtest.Mutant
	for _, m := range []struct{ name, test, old, to string }{
		{"checksums are not looked at", damaged, "	if crc32.Checksum(body, table()) != binary.LittleEndian.Uint32(frame[4:]) {\n", "	if crc32.Checksum(body, table()) != binary.LittleEndian.Uint32(frame[4:]) && !mutant(NAME) {\n"},
		{"damage within the file is a cut", damaged, "		if at+frameBytes+n == end {\n", "		if mutant(NAME) || at+frameBytes+n == end && !mutant(\"the last record, half of it on the disk, is damage\") {\n"},
		{"the last record, half of it on the disk, is damage", "TestALastWriteOfWhichABlockIsMissing", "", ""}, // By the edit before.
		{"what was cut off stays behind the end", cut, "	if q.size == end {\n", "	if q.size == end || mutant(NAME) {\n"},
		{"a head that was cut off is damage", cut, "	if string(begun) != head[:len(begun)] {\n", "	if string(begun) != head[:len(begun)] || mutant(NAME) && len(begun) > 0 && len(begun) < len(head) {\n"},
		{"what was removed comes back", model, "	if kind == kindEntry {\n		q.live[id] = at\n", "	if kind == kindEntry || mutant(NAME) && there {\n		q.live[id] = at\n"},
		{"entries come in another order", model, "return cmp.Compare(a.at, b.at) })", "return cmp.Compare(a.at, b.at) * map[bool]int{false: 1, true: -1}[mutant(NAME)] })"},
		{"a removal is not on the disk", model, "	if err := q.write(records, false); err != nil {\n", "	if mutant(NAME) {\n		records = nil\n	}\n	if err := q.write(records, false); err != nil {\n"},
		{"writing anew leaves the last entry out", model, "	for _, at := range q.places() {\n		record", "	for i, at := range q.places() {\n		if mutant(NAME) && i > 0 && i == len(q.live)-1 {\n			continue\n		}\n		record"},
	} {
		looked := simulationtest.Mutant{Name: m.name, Package: ".", Tests: []string{m.test}}
		if m.old != "" {
			looked.Edits = []simulationtest.Edit{{File: "filequeue.go", Old: m.old, New: m.to}}
		}
		all = append(all, looked)
	}
	simulationtest.RequireFound(t, ".", all)
}

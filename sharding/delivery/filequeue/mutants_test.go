// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package filequeue_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects of what is on the disk makes a test fail.
func TestMutantsAreCaught(t *testing.T) {
	const model, cut, damaged = "TestTheQueueIsItsModel", "TestAWriteThatWasCutOff", "TestADamagedFile"
	const world = "TestQueuesInFiles"
	const crash, anew = "TestWhatWasConfirmedIsThereAfterACrash", "TestWritingAnewMayFailAnywhere"
	const rotten = "TestDamageIsNotSealedAnew"
	usual := []string{"QUORATE_SEEDS=", "QUORATE_SEED=", "QUORATE_FIRST_SEED="}
	var all []simulationtest.Mutant
	for _, m := range []struct{ name, test, old, to string }{
		{"checksums are not looked at", damaged, "	if !intact(frame[:], body) {\n", "	if !intact(frame[:], body) && !mutant(NAME) {\n"},
		{"what has rotted is written anew", rotten, "	body, err := q.record(at.at, q.size)\n	if errors.Is(err, errCut) {\n", "	body, err := q.record(at.at, q.size)\n	if mutant(NAME) && err != nil {\n		body = make([]byte, at.size-frameBytes)\n		_, err = q.file.ReadAt(body, at.at+frameBytes)\n	}\n	if errors.Is(err, errCut) {\n"},
		{"a checksum without the salt", world, "	copy(covered[:], salt[:])\n", "	if !mutant(NAME) {\n		copy(covered[:], salt[:])\n	}\n"},
		{"a record counts at any place", world, "	binary.LittleEndian.PutUint64(covered[saltBytes:], uint64(at))", "	if mutant(NAME) {\n		at = 0\n	}\n	binary.LittleEndian.PutUint64(covered[saltBytes:], uint64(at))"},
		{"the checksum of the head is not looked at", damaged, "	case checksum(head[:headBytes-sumBytes]) != ", "	case !mutant(NAME) && checksum(head[:headBytes-sumBytes]) != "},
		{"a file of another version is damage", "TestAFileOfAnotherVersion", "!= title[:n] && ofAnotherVersion(head):", "!= title[:n] && ofAnotherVersion(head) && !mutant(NAME):"},
		{"damage within the file is a cut", damaged, "		if markOf(body) > from {\n", "		if markOf(body) > from && !mutant(NAME) || mutant(\"what a crash has left out is damage\") {\n"},
		{"the last record, half of it on the disk, is damage", "TestALastWriteOfWhichABlockIsMissing", "		return nil, errCut // Blocks", "		if mutant(NAME) {\n			return nil, q.damaged(at)\n		}\n		return nil, errCut // Blocks"},
		{"a head that was cut off is damage", cut, "	case len(head) < headBytes:\n", "	case mutant(NAME) && len(head) > 0 && len(head) < headBytes:\n		return Salt{}, ErrDamaged\n	case len(head) < headBytes:\n"},
		{"what was removed comes back", world, "	if kind == kindEntry {\n		q.live[id] = at\n", "	if kind == kindEntry || mutant(NAME) && there {\n		q.live[id] = at\n"},
		{"entries come in another order", world, "return cmp.Compare(a.at, b.at) })", "return cmp.Compare(a.at, b.at) * map[bool]int{false: 1, true: -1}[mutant(NAME)] })"},
		{"a removal is not on the disk", world, "	if err := q.write(records, false); err != nil {\n", "	if mutant(NAME) {\n		records = nil\n	}\n	if err := q.write(records, false); err != nil {\n"},
		{"writing anew leaves the last entry out", model, "		record := append(make([]byte, frameBytes), body...)\n", "		if mutant(NAME) && len(next.live) > 0 && len(next.live) == len(q.live)-1 {\n			continue\n		}\n		record := append(make([]byte, frameBytes), body...)\n"},
		{"an entry is confirmed before it is synced", world, "q.write(record, true)", "q.write(record, !mutant(NAME))"},
		{"a new file has no name after a crash", crash, "errors.Join(q.file.Sync(), q.files.Sync())", "errors.Join(q.file.Sync(), map[bool]func() error{false: q.files.Sync, true: q.file.Sync}[mutant(NAME)]())"},
		{"a file has its name before it is synced", anew, "	if err := next.file.Sync(); err != nil {\n", "	if mutant(NAME) {\n		return q.files.Rename(freshName, fileName)\n	}\n	if err := next.file.Sync(); err != nil {\n"},
		{"a name that could not be synced is forgotten", anew, "	if sync && q.unnamed {\n", "	if sync && q.unnamed && !mutant(NAME) {\n"},
		{"what a crash has left out is damage", world, "", ""}, // By an edit before.
	} {
		looked := simulationtest.Mutant{Name: m.name, Package: ".", Tests: []string{m.test}}
		switch m.test {
		case crash, anew, rotten:
			looked.Package, looked.Env = production, usual
		case world:
			looked.Package, looked.Env = "../internal/simulation", usual
		}
		if m.old != "" {
			looked.Edits = []simulationtest.Edit{{File: fileOf(t, m.old), Old: m.old, New: m.to}}
		}
		all = append(all, looked)
	}
	simulationtest.RequireFound(t, production, all)
}

const production = "../internal/queuefile"

// fileOf returns which file has a text.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	for _, name := range []string{"queue.go", "record.go"} {
		source, err := os.ReadFile(filepath.Join(production, name))
		require.NoError(t, err)
		if strings.Contains(string(source), text) {
			return name
		}
	}
	return "queue.go" // It is there no more, as the check of the mutant says.
}

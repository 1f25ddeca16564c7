// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// An owner opens a journal ([Open]), which seals the segments of earlier owners, appends
// to it ([Journal.Append]) and closes it. Readers use [Epochs], [Owner] and [ReadChain],
// which tell the records that count from those that do not.

// ErrSealed is returned when an owner with a higher epoch exists. The caller is no longer
// the owner: it must not acknowledge, and must stop.
var ErrSealed = errors.New("journal: sealed by an owner with a higher epoch")

// prefix begins the name of a segment; the epoch follows.
const prefix = "seal-"

// Record is one change of an account.
type Record struct {
	Transfer string `json:"transfer"`          // Id of the transfer that this record is a leg of.
	Cents    int64  `json:"cents"`             // Added to the balance; negative for a debit.
	Refused  bool   `json:"refused,omitempty"` // A debit that the balance did not cover: it changes nothing.
	At       int64  `json:"at"`                // When the record was written, Unix nanoseconds; set by Append.
}

// header is the first line of a segment.
type header struct {
	Owner  string `json:"owner"`  // Creator of the segment.
	Prev   string `json:"prev"`   // Epoch of the segment before this one, empty for the first.
	Length int64  `json:"length"` // Bytes of the previous segment that count.
	At     int64  `json:"at"`     // When the segment was created, Unix nanoseconds.
}

// Journal is the record of one account, open for its owner.
type Journal struct {
	dir   string
	epoch string
	file  *os.File
}

// Open makes owner the owner with the given epoch and returns all records that count,
// oldest first. Epochs are compared as strings, so their text form must preserve their
// order. An owner may open its own epoch again, after a restart of the entity in the same
// process. Open fails with [ErrSealed] when a higher epoch exists or the epoch belongs to
// another owner, and with an error of package os when the directory cannot be written.
func Open(dir, epoch, owner string) (*Journal, []Record, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, prefix+epoch), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if errors.Is(err, os.ErrExist) {
		return reopen(dir, epoch, owner)
	}
	if err != nil {
		return nil, nil, err
	}
	j := &Journal{dir: dir, epoch: epoch, file: file}
	records, err := j.takeOver(owner)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return j, records, nil
}

// reopen opens the segment that owner created before.
func reopen(dir, epoch, owner string) (*Journal, []Record, error) {
	chain, err := ReadChain(dir)
	if err != nil {
		return nil, nil, err
	}
	if len(chain) == 0 || chain[len(chain)-1].Epoch != epoch || chain[len(chain)-1].Owner != owner {
		return nil, nil, fmt.Errorf("%w: epoch %s is not %s's to open again", ErrSealed, epoch, owner)
	}
	file, err := os.OpenFile(filepath.Join(dir, prefix+epoch), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, nil, err
	}
	return &Journal{dir: dir, epoch: epoch, file: file}, counted(chain), nil
}

// takeOver reads the records that count in older segments and writes the header that says
// so.
func (j *Journal) takeOver(owner string) ([]Record, error) {
	created := time.Now().UnixNano()
	if err := j.checkSeals(); err != nil {
		return nil, err
	}
	chain, err := ReadChain(j.dir)
	if err != nil {
		return nil, err
	}
	h := header{Owner: owner, At: created}
	if len(chain) > 0 {
		last := chain[len(chain)-1]
		h.Prev, h.Length = last.Epoch, last.Length
	}
	return counted(chain), j.writeLine(h)
}

// checkSeals returns [ErrSealed] when there is a segment with a higher epoch.
func (j *Journal) checkSeals() error {
	epochs, err := Epochs(j.dir)
	if err != nil {
		return err
	}
	if last := epochs[len(epochs)-1]; last != j.epoch {
		return fmt.Errorf("%w: %s is above %s", ErrSealed, last, j.epoch)
	}
	return nil
}

// counted returns the records of chain that count, oldest first.
func counted(chain []Segment) []Record {
	var all []Record
	for _, s := range chain {
		all = append(all, s.Records...)
	}
	return all
}

// Append writes a record. It returns [ErrSealed] when another owner has taken over; that
// owner decides whether the record counts.
func (j *Journal) Append(r Record) error {
	r.At = time.Now().UnixNano()
	if err := j.writeLine(r); err != nil {
		return err
	}
	return j.checkSeals()
}

// Sync has the disk keep the appended records.
func (j *Journal) Sync() error { return j.file.Sync() }

// Close ends this owner's use of the journal. The journal can be opened again only with a
// higher epoch.
func (j *Journal) Close() error { return j.file.Close() }

// writeLine appends v in one write, so that a reader sees all of it or, if the
// process dies in the middle, a line without an end, which does not count.
func (j *Journal) writeLine(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(line, '\n'))
	return err
}

// Epochs returns the epochs of all owners of dir, lowest first.
func Epochs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	epochs := make([]string, 0, len(entries))
	for _, e := range entries {
		if epoch, ok := strings.CutPrefix(e.Name(), prefix); ok {
			epochs = append(epochs, epoch)
		}
	}
	slices.Sort(epochs)
	return epochs, nil
}

// Owner returns the owner of dir: that of the newest segment with a header, "" if there
// is none.
func Owner(dir string) (string, error) {
	epochs, err := Epochs(dir)
	if err != nil {
		return "", err
	}
	for _, epoch := range slices.Backward(epochs) {
		data, err := os.ReadFile(filepath.Join(dir, prefix+epoch))
		if err != nil {
			return "", err
		}
		if h, _, ok, err := parse(epoch, data, -1); ok || err != nil {
			return h.Owner, err
		}
	}
	return "", nil
}

// Segment is one owner's segment: the records that count, and those that do not.
type Segment struct {
	Epoch   string
	Owner   string
	Created int64    // Unix nanoseconds.
	Records []Record // Records that count.
	Length  int64    // Bytes that count, the header included.
	Beyond  []Record // Records written by this owner after another had taken over.
}

// ReadChain returns the segments that count, oldest first. A segment whose
// owner died before it wrote its header took no part and is left out. It is
// safe to call while owners write: the last segment is then read up to its
// last complete line.
func ReadChain(dir string) ([]Segment, error) {
	epochs, err := Epochs(dir)
	if err != nil {
		return nil, err
	}
	var chain []Segment
	want, limit := "", int64(-1) // The newest segment with a header ends the chain and counts as a whole.
	for _, epoch := range slices.Backward(epochs) {
		if want != "" && epoch != want {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, prefix+epoch))
		if err != nil {
			return nil, err
		}
		h, s, ok, err := parse(epoch, data, limit)
		if err != nil {
			return nil, fmt.Errorf("journal: %s: segment %s: %w", dir, epoch, err)
		}
		if !ok {
			continue
		}
		chain = append(chain, s)
		if h.Prev == "" {
			break
		}
		want, limit = h.Prev, h.Length
	}
	slices.Reverse(chain)
	return chain, nil
}

// parse splits a segment into its header, the records up to limit (all when negative) and
// those after it. It returns false when there is no header yet.
func parse(epoch string, data []byte, limit int64) (header, Segment, bool, error) {
	var h header
	s := Segment{Epoch: epoch}
	end := bytes.IndexByte(data, '\n')
	if end < 0 {
		return h, s, false, nil
	}
	if err := json.Unmarshal(data[:end], &h); err != nil {
		return h, s, false, err
	}
	at := int64(end + 1)
	s.Owner, s.Created, s.Length = h.Owner, h.At, at
	for {
		end := bytes.IndexByte(data[at:], '\n')
		if end < 0 {
			return h, s, true, nil
		}
		var r Record
		if err := json.Unmarshal(data[at:at+int64(end)], &r); err != nil {
			return h, s, false, err
		}
		at += int64(end) + 1
		if limit >= 0 && at > limit {
			s.Beyond = append(s.Beyond, r)
			continue
		}
		s.Records = append(s.Records, r)
		s.Length = at
	}
}

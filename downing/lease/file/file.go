// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package file

// From top to bottom: Take, which locks the lease or looks whether its lock is still the one
// on the disk; Give and Close, which unlock; the file with the token, read and written.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/downing/lease"
)

var (
	// ErrDamaged is wrapped by the error of Take if the file of a lease is not as it was
	// written. The token in it must not begin anew: write a higher one than was ever used.
	ErrDamaged = errors.New("the file of the lease is damaged")
	// ErrUndecided is wrapped by the error of Take while a lease lasts whose holder has ended
	// without giving it back, see [Open].
	ErrUndecided = errors.New("the lease of a process that has ended lasts for a while")
	// ErrClosed is returned by a [Store] that was closed.
	ErrClosed = errors.New("the store of leases is closed")

	errInUse = errors.New("another process has the lock")
)

const (
	// header begins the file of a lease, and names its format.
	header = "quorate-lease 1"
	// maxRecordBytes is more than the file of a lease can have.
	maxRecordBytes = 4 << 10
)

// Store keeps leases in a directory. Use [New]; Close it in the end.
type Store struct {
	dir   string
	lasts bool // A lease outlives the process of its holder.

	mu     sync.Mutex // guards what follows
	held   map[string]heldLease
	closed bool
}

// heldLease is a lease that this process holds; without an owner it is one that this process has
// locked, and that lasts for a process that has ended.
type heldLease struct {
	lock  *os.File
	owner string
	token uint64
	lasts time.Time
}

var _ lease.Store = (*Store)(nil)

// New returns the store of a directory, which it makes if it is not there.
func New(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	return &Store{dir: dir, held: make(map[string]heldLease)}, nil
}

// Take implements [lease.Store]. The context is looked at once, in the beginning: a local disk
// answers soon, or nobody can end the call.
func (s *Store) Take(ctx context.Context, c lease.Claim) (lease.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(ctx, c.Name); err != nil {
		return lease.Answer{}, err
	}
	h, ok := s.held[c.Name]
	switch {
	case ok && h.owner != "" && h.owner != c.Owner:
		return lease.Answer{Owner: h.owner}, nil
	case ok && !s.isCurrent(c.Name, h):
		delete(s.held, c.Name)
		return lease.Answer{}, errors.Join(fmt.Errorf("file: somebody deleted or replaced %s", s.path(c.Name, ".lock")), h.lock.Close())
	case ok && h.owner == "" && time.Now().Before(h.lasts):
		return lease.Answer{}, fmt.Errorf("file: %w: %v more", ErrUndecided, time.Until(h.lasts).Round(time.Millisecond))
	case h.owner == "":
		answer, err := s.lock(c, h)
		if err != nil {
			return answer, fmt.Errorf("file: %w", err)
		}
		return answer, nil
	}
	return lease.Answer{Granted: true, Owner: c.Owner, Token: h.token, TTL: c.TTL}, nil
}

// lock takes a lease that this process does not have. The lease of a process that has ended may
// be locked already.
func (s *Store) lock(c lease.Claim, h heldLease) (lease.Answer, error) {
	if h.lock != nil {
		return s.grant(c, h.lock, false)
	}
	file, err := lock(s.path(c.Name, ".lock"))
	if errors.Is(err, errInUse) {
		// The owner is written after the lock is taken; until then the former one is told.
		last, err := s.read(c.Name)
		if err == nil && last.owner == "" {
			last.owner = "a process that begins"
		}
		return lease.Answer{Owner: last.owner}, err
	}
	if err != nil {
		return lease.Answer{}, err
	}
	return s.grant(c, file, s.lasts)
}

// grant gives a lease whose lock was taken to the claimant, unless it lasts for somebody else.
func (s *Store) grant(c lease.Claim, file *os.File, mayLast bool) (lease.Answer, error) {
	delete(s.held, c.Name)
	h, err := s.next(c, file, mayLast)
	if err != nil && h.lasts.IsZero() {
		return lease.Answer{}, errors.Join(err, unlock(file))
	}
	s.held[c.Name] = h
	if err != nil {
		return lease.Answer{}, err
	}
	return lease.Answer{Granted: true, Owner: c.Owner, Token: h.token, TTL: c.TTL}, nil
}

// next gives a lease whose lock was taken its next token. If it may last for a process that
// has ended it does so for the TTL, which all claims have alike, and what clocks may differ.
func (s *Store) next(c lease.Claim, file *os.File, mayLast bool) (heldLease, error) {
	h := heldLease{lock: file, owner: c.Owner}
	if !s.isCurrent(c.Name, h) {
		return h, fmt.Errorf("somebody deleted or replaced %s", s.path(c.Name, ".lock"))
	}
	last, err := s.read(c.Name)
	if err != nil {
		return h, err
	}
	if mayLast && last.owner != "" && !last.given {
		h.owner, h.lasts = "", time.Now().Add(c.TTL+c.TTL/20)
		return h, fmt.Errorf("%w: it was that of %s", ErrUndecided, last.owner)
	}
	if last.token == math.MaxUint64 {
		return h, fmt.Errorf("%w: there is no token above %d", ErrDamaged, last.token)
	}
	h.token = last.token + 1
	return h, s.write(c.Name, record{token: h.token, owner: c.Owner})
}

// isCurrent reports whether the file that is locked is the one that others would lock.
func (s *Store) isCurrent(name string, h heldLease) bool {
	mine, err := h.lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(s.path(name, ".lock"))
	return err == nil && os.SameFile(mine, there)
}

// Give implements [lease.Store].
func (s *Store) Give(ctx context.Context, c lease.Claim) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(ctx, c.Name); err != nil {
		return err
	}
	h, ok := s.held[c.Name]
	if !ok || h.owner != c.Owner {
		return nil
	}
	delete(s.held, c.Name)
	err := s.write(c.Name, record{token: h.token, owner: h.owner, given: true})
	return errors.Join(err, unlock(h.lock))
}

// Close unlocks all leases. It may be called more than once.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var faults []error
	for _, h := range s.held {
		faults = append(faults, unlock(h.lock))
	}
	clear(s.held)
	return errors.Join(faults...)
}

func (s *Store) check(ctx context.Context, name string) error {
	if s.closed {
		return ErrClosed
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return lease.CheckName("name", name) // It becomes a part of a path.
}

func (s *Store) path(name, suffix string) string { return filepath.Join(s.dir, name+suffix) }

// record is what the file of a lease holds.
type record struct {
	token uint64
	owner string
	given bool // The owner has given it back.
}

// read returns the record of a lease; the zero record if the lease was never taken.
func (s *Store) read(name string) (record, error) {
	file, err := os.Open(s.path(name, ".lease"))
	if errors.Is(err, os.ErrNotExist) {
		return record{}, nil
	}
	if err != nil {
		return record{}, err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxRecordBytes+1))
	if err = errors.Join(err, unlock(file)); err != nil {
		return record{}, err
	}
	r, err := decode(data)
	if err != nil {
		return record{}, fmt.Errorf("%w: %s: %w", ErrDamaged, s.path(name, ".lease"), err)
	}
	return r, nil
}

// write replaces the record of a lease, which survives a crash of the machine then.
func (s *Store) write(name string, r record) error {
	fresh, err := os.CreateTemp(s.dir, name+".new-*")
	if err != nil {
		return err
	}
	_, err = fresh.Write(encode(r))
	err = errors.Join(err, fresh.Sync(), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), s.path(name, ".lease"))
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh.Name()))
	}
	return syncDirectory(s.dir)
}

// givenBack is the last line of the record of a lease that was given back.
const givenBack = "given back"

// encode returns the lines of a record: the format, the token, the owner in quotes, and one
// more if the owner has given it back.
func encode(r record) []byte {
	text := fmt.Appendf(nil, "%s\n%d\n%q\n", header, r.token, r.owner)
	if r.given {
		text = append(text, givenBack+"\n"...)
	}
	return text
}

// decode accepts what encode returns, and nothing else.
func decode(data []byte) (record, error) {
	if len(data) > maxRecordBytes {
		return record{}, fmt.Errorf("it has more than %d bytes", maxRecordBytes)
	}
	lines := strings.Split(string(data), "\n")
	if len(lines) < 4 || len(lines) > 5 || lines[0] != header {
		return record{}, fmt.Errorf("it is not three or four lines of which the first is %q", header)
	}
	token, err := strconv.ParseUint(lines[1], 10, 64)
	if err != nil || token == 0 {
		return record{}, errors.New("its second line is no token")
	}
	owner, err := strconv.Unquote(lines[2])
	if err != nil || owner == "" {
		return record{}, errors.New("its third line is no owner")
	}
	r := record{token: token, owner: owner, given: len(lines) == 5}
	if string(encode(r)) != string(data) {
		return record{}, errors.New("it was not written by this program")
	}
	return r, nil
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/quorate/quorate/plugins"
)

// An executable is copied while it is hashed ([Launcher.Stage]), hashed again before each
// launch ([Binary.verify]) and removed with its directory. Refusals are [StartError]
// values with a cure.

// maxBinaryBytes is the largest executable: 1 GiB.
const maxBinaryBytes = 1 << 30

// chunk is how many bytes are copied between two checks of the context.
const chunk = 1 << 20

// Binary is a private copy of an executable whose checksum was verified.
type Binary struct {
	source string // Path of the original.
	path   string // Path of the copy.
	sum    [sha256.Size]byte
	fresh  atomic.Bool // The copy was hashed just now, and not launched since.
}

// Sum returns the checksum of the copy.
func (b *Binary) Sum() string { return hex.EncodeToString(b.sum[:]) }

// Missing reports whether the copy was removed from outside.
func (b *Binary) Missing() bool {
	_, err := os.Stat(b.path)
	return errors.Is(err, fs.ErrNotExist)
}

// StartError says why an executable cannot be used: one of the sentinels of package
// plugins, the detail, and what to do about it.
type StartError struct {
	Err   error
	Cause error
	Cure  string
}

// Error implements error.
func (f *StartError) Error() string { return f.Err.Error() + ": " + f.Cause.Error() }

// Unwrap returns both errors.
func (f *StartError) Unwrap() []error { return []error{f.Err, f.Cause} }

// binaries numbers the copies of a launcher.
type binaries struct{ last atomic.Uint64 }

// Stage copies the file at path, which must be absolute, and verifies that its checksum is one of those that are
// wanted, unless want is nil. The error is a [*StartError], or that of the context. The copy is removed with
// [Binary.Remove], or with the launcher.
func (l *Launcher) Stage(ctx context.Context, path string, want plugins.Checksums) (*Binary, error) {
	b := &Binary{source: path}
	dir := l.dir.binaryDir(l.copies.last.Add(1))
	b.path = filepath.Join(dir, filepath.Base(path))
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = b.copyFrom(ctx, path)
	}
	if err == nil && want != nil && !want.Match(b.Sum()) {
		err = anotherSum(b.Sum(), want)
	}
	if err != nil {
		b.Remove()
		return nil, err
	}
	b.fresh.Store(true)
	return b, nil
}

// anotherSum is the error for a file that has none of the checksums that are wanted.
func anotherSum(sum string, want plugins.Checksums) error {
	says := fmt.Sprintf("none of the %d that the configuration names", len(want))
	cure := "if the new file is the one to run, write its checksum into sha256 beside those of other platforms"
	if len(want) == 1 {
		says, cure = "the configuration says "+want[0], "if the new file is the one to run, write its checksum into sha256"
	}
	return &StartError{Err: plugins.ErrChecksum, Cause: fmt.Errorf("the file has %s, %s", sum, says), Cure: cure}
}

// Remove removes the copy. Where the system does not permit that while a process runs it,
// the launcher removes the copy later.
func (b *Binary) Remove() {
	if b.path != "" {
		_ = os.RemoveAll(filepath.Dir(b.path))
	}
}

// copyFrom copies and hashes the file.
func (b *Binary) copyFrom(ctx context.Context, path string) error {
	in, err := openSource(path)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // The file was only read.
	// Write permission is taken away below, so that no program, not even of this user,
	// opens the copy for writing by accident.
	out, err := os.OpenFile(b.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	err = b.hash(ctx, io.TeeReader(in, out))
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chmod(b.path, 0o500)
	}
	return err
}

// hash reads everything and sets the checksum.
func (b *Binary) hash(ctx context.Context, r io.Reader) error {
	h := sha256.New()
	var size int64
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := io.CopyN(h, r, chunk)
		size += n
		switch {
		case errors.Is(err, io.EOF):
			h.Sum(b.sum[:0])
			return nil
		case err != nil:
			return err
		case size > maxBinaryBytes:
			return notPlugin("look at path", "it has more than %d bytes", maxBinaryBytes)
		}
	}
}

// verify hashes the copy again, unless it was made just now: each start runs exactly what
// was checked.
func (b *Binary) verify(ctx context.Context) error {
	if b.fresh.Swap(false) {
		return nil
	}
	f, err := os.Open(b.path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	again := Binary{}
	if err := again.hash(ctx, f); err != nil {
		return err
	}
	if again.sum != b.sum {
		return &StartError{
			Err: plugins.ErrChecksum, Cause: fmt.Errorf("the copy at %s has %x, it had %x", b.path, again.sum, b.sum),
			Cure: "find out who writes into the directory of the host",
		}
	}
	return nil
}

// openSource opens an executable file and refuses anything else: opening a named pipe
// would block.
func openSource(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, notPlugin("look at path; in a file it is relative to that file", "there is no such file")
	case errors.Is(err, fs.ErrPermission):
		return nil, notPlugin("let the user of this process read and execute it", "it may not be read")
	case err != nil:
		return nil, notPlugin("look at path", "%w", err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = notPlugin("look at path", "%w", err)
	case info.IsDir():
		err = notPlugin("name the executable in it", "it is a directory")
	case !info.Mode().IsRegular():
		err = notPlugin("look at path", "it is no regular file (%s)", info.Mode())
	case !executable(info):
		err = notPlugin("make it executable (chmod +x)", "it is not executable (%s)", info.Mode())
	}
	if err != nil {
		_ = f.Close() // The file was only opened.
		return nil, err
	}
	return f, nil
}

// notPlugin returns the error for a fault of the file or of the running program.
func notPlugin(cure, format string, args ...any) error {
	return &StartError{Err: plugins.ErrNotPlugin, Cause: fmt.Errorf(format, args...), Cure: cure}
}

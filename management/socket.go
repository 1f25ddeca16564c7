// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
)

const (
	// socketMode is the mode of the socket: only its owner connects.
	socketMode = 0o600
	// preparing is the end of the name under which the socket is made, until it has its mode.
	preparing = ".new"
)

// socket is a listener on a Unix socket, which it removes when it is closed.
type socket struct {
	*net.UnixListener

	path string
}

// CheckSocket reports why no socket can be made at a path, as far as the file system tells. Whether a process listens
// there is not looked at.
func CheckSocket(path string) error {
	if runtime.GOOS == "windows" {
		return errors.New("this system does not keep others from opening it: use a token")
	}
	if len(path) > maxSocketPath {
		return fmt.Errorf("%q has %d bytes, sockets can have %d", path, len(path), maxSocketPath)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("%s is there, and is no socket: name another path, or remove it", path)
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not on this machine: make the directory, or name another path", dir)
	} else if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is no directory: name another path", dir)
	}
	return nil
}

// listenSocket makes the socket. A socket of a process that has ended is replaced, one that
// answers is an error.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	fault := func(err error) (net.Listener, error) {
		return nil, fmt.Errorf("management: operators.socket %s: %w", path, err)
	}
	if err := CheckSocket(path); err != nil {
		return fault(err)
	}
	if conn, err := new(net.Dialer).DialContext(ctx, "unix", path); err == nil {
		_ = conn.Close() // It was only tried.
		return fault(errors.New("another process listens there"))
	}
	made := path + preparing
	_ = os.Remove(made) // A process may have ended before it gave the socket its name.
	l, err := new(net.ListenConfig).Listen(ctx, "unix", made)
	if err != nil {
		return fault(err)
	}
	unix := l.(*net.UnixListener) // That is what the network has.
	unix.SetUnlinkOnClose(false)  // It would remove the name that the socket has lost.
	if err = os.Chmod(made, socketMode); err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		_ = l.Close() // No connection was accepted.
		_ = os.Remove(made)
		return fault(err)
	}
	return &socket{unix, path}, nil
}

// Close closes the listener and removes the socket.
func (s *socket) Close() error {
	err := s.UnixListener.Close()
	if err == nil {
		_ = os.Remove(s.path) // It may have been removed from outside.
	}
	return err
}

// socketOf returns the Unix socket over which a request came, nil if it came otherwise.
func socketOf(ctx context.Context) *net.UnixConn {
	c := placeOf(ctx)
	if c == nil {
		return nil
	}
	unix, _ := c.Conn.(*net.UnixConn)
	return unix
}

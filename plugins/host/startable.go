// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"

	"github.com/quorate/quorate/plugins"

	"github.com/quorate/quorate/config/field"
)

// Startable returns why a plugin cannot be started on this machine, as far as its file and its user tell, with the key;
// nil if nothing is in the way. A path must be absolute. What this user may not look at is not in the way.
func (h *Host) Startable(cfg plugins.Config) error {
	faults := field.Faults{}
	faults.Add(runnable(cfg))
	for _, l := range confinementOf(cfg).Lacks() {
		faults.Refuse(l.Key == "user" || l.Key == "group", l.Key, "%s", l.Reason)
	}
	return faults.Err()
}

// runnable returns why the file of a plugin cannot be run.
func runnable(cfg plugins.Config) error {
	info, err := os.Stat(cfg.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return field.Errorf("path", "%s is not on this machine: correct it, or put the file there", cfg.Path)
	case err != nil:
		return nil //nolint:nilerr // The user of the node may look.
	case info.IsDir():
		return field.Errorf("path", "%s is a directory: name the executable in it", cfg.Path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0:
		return field.Errorf("path", "%s is not executable: say chmod +x", cfg.Path)
	}
	sum := checksum(cfg.Path)
	switch {
	case len(cfg.SHA256) == 0 || sum == "" || cfg.SHA256.Match(sum):
		return nil
	case len(cfg.SHA256) == 1:
		return field.Errorf("sha256", "is not that of %s on this machine, %s, so that the plugin is not started: quorate plugin pin writes it", cfg.Path, sum)
	}
	return field.Errorf("sha256", "has %d checksums, none of which is that of %s on this machine, %s, so that the plugin is not started: "+
		"quorate plugin pin adds it", len(cfg.SHA256), cfg.Path, sum)
}

// checksum returns the checksum of a file, empty if it cannot be read.
func checksum(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // It was only read.
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

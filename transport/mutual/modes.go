// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package mutual

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

const (
	// looseForKeys are the permissions that the file of a key should not have. The
	// group may read, as on platforms that mount secrets.
	looseForKeys fs.FileMode = 0o026
	// looseForDirectories are the permissions that a directory should not have if the
	// node trusts files that it has written there. The group may write, as with
	// mounted volumes.
	looseForDirectories fs.FileMode = 0o002
)

// LooseKey warns when any user may read the file of a key, or users other than its
// owner may change it. It returns "" when the permissions are good or cannot be read.
func LooseKey(path string) string {
	return loose(path, looseForKeys, "the key", "0600 or 0640")
}

// LooseDirectory warns when any user may change what is in a directory. It returns ""
// when the permissions are good or cannot be read.
func LooseDirectory(path string) string {
	return loose(path, looseForDirectories, "the directory", "0700")
}

func loose(path string, mode fs.FileMode, what, better string) string {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&mode == 0 { // Windows has no such modes.
		return ""
	}
	return fmt.Sprintf("%s %s has mode %04o, so that other users of this machine may read or change it: give it %s", what, path, info.Mode().Perm(), better)
}

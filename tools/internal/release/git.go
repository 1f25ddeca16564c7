// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// command runs a program in a directory and returns its standard output. An error
// contains its standard error.
func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("release: %s %s in %s: %w: %s", name, strings.Join(args, " "), dir, err, strings.TrimSpace(complaint.String()))
	}
	return string(output), nil
}

// git runs git in a directory, as the author of the release if env names one.
func git(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	return command(ctx, dir, env, "git", args...)
}

// nobody is the author of commits that are never pushed: the user's identity, signature
// and hooks are not used.
// user's is asked for.
func nobody() []string {
	return []string{
		"GIT_AUTHOR_NAME=draft", "GIT_AUTHOR_EMAIL=draft@localhost", "GIT_COMMITTER_NAME=draft", "GIT_COMMITTER_EMAIL=draft@localhost",
		"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_SYSTEM=" + os.DevNull,
	}
}

// files returns the names of the files that a commit of the work tree would contain, with
// slashes.
func files(ctx context.Context, repo string) ([]string, error) {
	output, err := git(ctx, repo, nil, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	names := strings.FieldsFunc(output, func(r rune) bool { return r == 0 })
	// A tracked file may be deleted in the work tree.
	return slices.DeleteFunc(names, func(name string) bool {
		_, err := os.Lstat(filepath.Join(repo, filepath.FromSlash(name)))
		return errors.Is(err, fs.ErrNotExist)
	}), nil
}

// copyTree makes a repository with one commit: the work tree of repo as it stands,
// committed or not.
func copyTree(ctx context.Context, repo, clone string) error {
	names, err := files(ctx, repo)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := copyFile(filepath.Join(repo, filepath.FromSlash(name)), filepath.Join(clone, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "the tree as it stands"}} {
		if _, err := git(ctx, clone, nobody(), args...); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	about, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if about.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, about.Mode().Perm())
}

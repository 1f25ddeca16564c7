// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/internal/patience"
)

// References to files and variables: where they may stand, what they may not be, that no fault shows what they stand
// for, and that a change of it is a change of the configuration.

type withSecrets struct {
	Name     string         `koanf:"name"`
	Count    int            `koanf:"count"`
	Roles    []string       `koanf:"roles"`
	Settings any            `koanf:"settings"`
	Env      map[string]any `koanf:"environment"`
	Short    shortText      `koanf:"short"`
}

func (w withSecrets) Validate() error {
	if len(w.Name) > 40 {
		return &fieldError{"name", fmt.Sprintf("%q is too long, of which %q is the beginning", w.Name, w.Name[:20])}
	}
	return nil
}

// shortText is a text that refuses to be long.
type shortText string

func (s *shortText) UnmarshalText(b []byte) error {
	if len(b) > 10 {
		return fmt.Errorf("%s is longer than 10", b)
	}
	*s = shortText(b)
	return nil
}

// referring reads a file beside others, with an environment.
func referring(t *testing.T, text string, environ []string, files map[string]string) (*config.File, string, error) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	path := filepath.Join(dir, "cluster.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	file, err := config.Loader{Environ: environ}.Load(path)
	return file, dir, err
}

func TestReferencesStandForTexts(t *testing.T) {
	file, dir, err := referring(t, strings.Join([]string{
		"name: ${file:token}", "count: ${env:COUNT}", `roles: [a, "x-${env:ZONE}-${env:ZONE}"]`, "settings: {deep: [{token: 'Bearer ${file:token}'}]}",
		`environment: {TOKEN: "${file:token}", SHELL: "$${env:ZONE} ${HOME}"}`,
	}, "\n"), []string{"COUNT=7", "ZONE=old", "ZONE=eu", "NESTED=${env:COUNT}", "QUORATE_SHORT=none"}, map[string]string{"token": "s3cret\n"})
	require.NoError(t, err)
	var s withSecrets
	require.NoError(t, file.Decode("", &s))
	require.Equal(t, withSecrets{
		Name: "s3cret", Count: 7, Roles: []string{"a", "x-eu-eu"},
		Settings: map[string]any{"deep": []any{map[string]any{"token": "Bearer s3cret"}}},
		Env:      map[string]any{"TOKEN": "s3cret", "SHELL": "${env:ZONE} ${HOME}"},
	}, s)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte("another"), 0o600))
	file, err = file.Reload()
	require.NoError(t, err)
	require.NoError(t, file.Decode("", &s))
	require.Equal(t, "another", s.Name)
	file, _, err = referring(t, "a: {name: x}", []string{"QUORATE_A__NAME=${env:REAL}", "REAL=${env:REAL}"}, nil)
	require.NoError(t, err)
	require.NoError(t, file.Decode("a", &s))
	require.Equal(t, "${env:REAL}", s.Name, "what a reference stands for is no reference")
}

func TestReferencesThatStandForNothing(t *testing.T) {
	for reference, want := range map[string]string{
		"${file:none}": "cluster.yaml:1: name: ${file:none} no such file",
		"${file:}":     "cluster.yaml:1: name: ${file:} names no file",
		"${file:.}":    "cluster.yaml:1: name: ${file:.} is a directory, a file is needed",
		"${file:huge}": "cluster.yaml:1: name: ${file:huge} is larger than 65536 bytes",
		"${file:odd}":  "cluster.yaml:1: name: ${file:odd} is not UTF-8 text",
		"${env:NONE}":  "cluster.yaml:1: name: ${env:NONE} is not set in the environment",
		"${env:}":      "cluster.yaml:1: name: ${env:} is not set in the environment",
	} {
		_, _, err := referring(t, "name: '"+reference+"'", []string{"SOME=x"}, map[string]string{"huge": strings.Repeat("x", 70_000), "odd": "\xff"})
		require.Equal(t, []string{want}, faults(t, err))
	}
	_, err := config.Parse("text.yaml", []byte("name: ${env:HOME}"))
	require.Equal(t, []string{"text.yaml:1: name: ${env:HOME} has no place in a text that is not in a file"}, faults(t, err))
	many := make([]string, 1100)
	environ := make([]string, len(many))
	for i := range many {
		many[i], environ[i] = fmt.Sprintf("'${env:N%d}'", i), fmt.Sprintf("N%d=x", i)
	}
	_, _, err = referring(t, "roles: ["+strings.Join(many, ", ")+"]", environ, nil)
	require.ErrorContains(t, err, "is one of more than 1000 references")
}

// Whatever setting a secret does not fit, no fault has five characters of it.
func TestNoFaultShowsASecret(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		secret := rapid.StringOfN(rapid.RuneFrom([]rune("ABCDEFGHKLMNPQ0123456789\n\"ü")), 5, 60, -1).Draw(r, "secret")
		text := rapid.SampledFrom([]string{
			"count: ${file:s}", "name: ${file:s}", "settings: 1\nshort: ${file:s}", "short: 'x${file:s}y'", "roles: {a: '${file:s}'}", "environment: ${file:s}", "roles: '${file:s}'",
		}).Draw(r, "text")
		file, _, err := referring(t, text, nil, map[string]string{"s": secret})
		if err == nil {
			err = file.Decode("", new(withSecrets))
		}
		if err == nil {
			return
		}
		said := err.Error()
		all, _ := errors.AsType[config.Errors](err)
		for _, one := range all {
			for cause := error(one); cause != nil; cause = errors.Unwrap(cause) {
				said += cause.Error()
			}
		}
		secret = strings.TrimSuffix(secret, "\n")
		for i := 0; i+5 <= len(secret); i++ {
			if strings.Contains(said, secret[i:i+5]) {
				r.Fatalf("%q is in %s", secret[i:i+5], said)
			}
		}
		said = fmt.Sprint(file.Locate(&fieldError{"name", "the token " + secret + " is refused"}))
		if strings.HasPrefix(text, "name") && len(secret) > 4 && strings.Contains(said, secret) {
			r.Fatalf("%q is in %s", secret, said)
		}
	})
}

// A watcher reports a file that is referred to, also one that is a link, as Kubernetes makes them.
func TestAChangedSecretIsReported(t *testing.T) {
	patience.Watch(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "token"), "first")
	path := filepath.Join(dir, "cluster.yaml")
	put(t, path, "node: {name: '${file:token}'}\n")
	reports := watched(t, path)
	put(t, filepath.Join(dir, "token.new"), "second")
	require.NoError(t, os.Rename(filepath.Join(dir, "token.new"), filepath.Join(dir, "token")))
	named(t, reports, "second")
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
)

// Proxy is a directory that serves the go command as a module proxy: for our modules from
// the directory, for those of others from the cache of this machine first, so that no
// network is needed when that cache is complete.
type Proxy struct {
	dir   string
	cache string // cache of the go command for this proxy alone
}

// NewProxy makes an empty proxy in a directory.
func NewProxy(dir string) (*Proxy, error) {
	p := &Proxy{dir: filepath.Join(dir, "proxy"), cache: filepath.Join(dir, "modcache")}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	return p, nil
}

// Env returns the variables with which the go command uses the proxy. Modules whose paths
// begin with prefix are not looked up in a checksum database, since they are in none yet;
// those of others are verified as the user has set it. The module cache is fresh, or a
// version that is packed again would be served as before. Without -trimpath the build
// cache would not recognize the packages of others in a fresh module cache, and compile
// them again each time.
func (p *Proxy) Env(ctx context.Context, prefix string) ([]string, error) {
	said, err := command(ctx, p.dir, []string{"GOWORK=off"}, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(said, "\n")
	cached := filepath.Join(lines[0], "cache", "download")
	return []string{
		"GOWORK=off", "GOFLAGS=-modcacherw -trimpath", "GOPRIVATE=", "GONOPROXY=none", "GONOSUMDB=" + prefix + "/*", "GOMODCACHE=" + p.cache,
		"GOPROXY=file://" + filepath.ToSlash(p.dir) + ",file://" + filepath.ToSlash(cached) + "," + lines[1],
	}, nil
}

// add publishes one version of a module, and returns the hash by which a go.sum
// names its content.
func (p *Proxy) add(m module.Version, gomod, packed []byte) (string, error) {
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return "", err
	}
	at := filepath.Join(p.dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return "", err
	}
	info, err := json.Marshal(map[string]any{"Version": m.Version, "Time": time.Now().UTC()})
	if err != nil {
		return "", err
	}
	for name, data := range map[string][]byte{
		m.Version + ".info": info, m.Version + ".mod": gomod, m.Version + ".zip": packed,
	} {
		if err := os.WriteFile(filepath.Join(at, name), data, 0o644); err != nil {
			return "", err
		}
	}
	list, _ := os.ReadFile(filepath.Join(at, "list")) // None yet.
	if !strings.Contains("\n"+string(list), "\n"+m.Version+"\n") {
		if err := os.WriteFile(filepath.Join(at, "list"), append(list, m.Version+"\n"...), 0o644); err != nil {
			return "", err
		}
	}
	return dirhash.HashZip(filepath.Join(at, m.Version+".zip"), dirhash.Hash1)
}

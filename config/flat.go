// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/knadh/koanf/v2"
)

// Stores of keys give a koanf provider a flat map of texts. Flat makes groups of its keys, Document takes one of them
// for a file.

// Flat returns a provider of what another one has in its Read under keys like "bank/membership/gossip-interval":
// without the prefix, and with a level below each separator. A key without the prefix is an error, and so is one that
// is a value and has others below it. Keys that end with the separator and have no value, by which stores mark
// folders, are passed over.
func Flat(p koanf.Provider, prefix, separator string) koanf.Provider {
	return flatKeys{p, prefix, separator}
}

// Document returns a provider whose ReadBytes is the text that another one has under a key in its Read: a whole file,
// for a parser.
func Document(p koanf.Provider, key string) koanf.Provider { return documentKey{p, key} }

type flatKeys struct {
	koanf.Provider

	prefix, separator string
}

// Read returns the keys as groups.
func (f flatKeys) Read() (map[string]any, error) {
	given, err := f.Provider.Read()
	if err != nil {
		return nil, err
	}
	tree := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		rest, ok := strings.CutPrefix(key, f.prefix)
		if !ok {
			return nil, fmt.Errorf("the key %q does not begin with %q", short(key), f.prefix)
		}
		if rest == "" || strings.HasSuffix(rest, f.separator) && given[key] == "" {
			continue
		}
		if _, group := given[key].(map[string]any); group {
			return nil, fmt.Errorf("the key %q has a group already", short(key))
		}
		if !put(tree, strings.Split(rest, f.separator), given[key]) {
			return nil, fmt.Errorf("the key %q has a value, or is below one that has", short(key))
		}
	}
	return tree, nil
}

// ReadBytes returns an error: the keys have no text together.
func (flatKeys) ReadBytes() ([]byte, error) { return nil, errors.ErrUnsupported }

func (f flatKeys) inner() koanf.Provider { return f.Provider }

// put sets a value below groups, which it makes. False: one of them is a value, or the value is a group.
func put(tree map[string]any, path []string, value any) bool {
	for _, part := range path[:len(path)-1] {
		below, there := tree[part]
		if !there {
			below = map[string]any{}
			tree[part] = below
		}
		group, ok := below.(map[string]any)
		if !ok {
			return false
		}
		tree = group
	}
	last := path[len(path)-1]
	if _, there := tree[last]; there {
		return false
	}
	tree[last] = value
	return true
}

// documentKey is one key of a provider.
type documentKey struct {
	koanf.Provider

	key string
}

// ReadBytes returns the text of the key.
func (k documentKey) ReadBytes() ([]byte, error) {
	given, err := k.Provider.Read()
	if err != nil {
		return nil, err
	}
	switch text := given[k.key].(type) {
	case nil:
		return nil, fmt.Errorf("there is no key %q", short(k.key))
	case string:
		return []byte(text), nil
	case []byte:
		return text, nil
	default:
		return nil, fmt.Errorf("the key %q has a %T, and no text", short(k.key), text)
	}
}

// Read returns an error: the text needs a parser.
func (k documentKey) Read() (map[string]any, error) {
	return nil, fmt.Errorf("the text under the key %q needs a parser", short(k.key))
}

func (k documentKey) inner() koanf.Provider { return k.Provider }

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// References to texts that do not belong into a file: ${file:…} and ${env:…}. After all layers are merged, replaceAll
// puts the texts in their places, and from then on hide keeps them out of faults.

const (
	// maxReferencedBytes bounds a file that is referred to: keys and certificates have some thousand bytes.
	maxReferencedBytes = 64 << 10
	// maxReferences bounds the references of a configuration.
	maxReferences = 1000
	// maxShown is how many bytes of a secret in a row a fault about its setting may have, by chance, and
	// maxShownElsewhere how many one about another setting may have.
	maxShown          = 4
	maxShownElsewhere = 11
)

// reference is a reference in a text, or a text that would be one and begins with another dollar sign.
var reference = regexp.MustCompile(`\$?\$\{(file|env):([^{}]*)\}`)

// secret is a text that took the place of a reference.
type secret struct {
	key  string // Of its setting, for people.
	name string // The reference.
	text string
}

// references replaces the references of one File.
type references struct {
	of      *File
	environ []string
	known   map[string]string // What was read, by reference.
	faults  Errors
}

// replaceAll returns a tree with the texts in the place of references.
func (r *references) replaceAll(value any, path []string) any {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(value) {
			value[key] = r.replaceAll(value[key], extend(path, key))
		}
	case []any:
		for i := range value {
			value[i] = r.replaceAll(value[i], item(path, i))
		}
	case string:
		return r.replace(value, path)
	}
	return value
}

// replace returns a text with what its references stand for.
func (r *references) replace(text string, path []string) string {
	if !strings.Contains(text, "${") {
		return text
	}
	return reference.ReplaceAllStringFunc(text, func(name string) string {
		if strings.HasPrefix(name, "$$") {
			return name[1:]
		}
		found, reason := r.read(name)
		if reason != "" {
			where := r.of.at(path)
			r.faults = append(r.faults, &Error{File: where.file, Line: where.line, Key: display(path), Reason: name + " " + reason, Err: ErrRead})
			return ""
		}
		where := r.of.at(path)
		where.text = where.text || name == text // A whole number, for instance, may be referred to.
		r.of.sources[strings.Join(path, separator)] = where
		r.of.secrets = append(r.of.secrets, secret{display(path), name, found})
		return found
	})
}

// read returns what a reference stands for, or why there is nothing.
func (r *references) read(name string) (text, reason string) {
	if known, ok := r.known[name]; ok {
		return known, ""
	}
	if r.of.from == nil {
		return "", "has no place in a text that is not in a file"
	}
	if len(r.known) >= maxReferences {
		return "", fmt.Sprintf("is one of more than %d references", maxReferences)
	}
	parts := reference.FindStringSubmatch(name)
	if text, reason = r.file(parts[2]); parts[1] == "env" {
		text, reason = r.variable(parts[2])
	}
	if reason == "" && !utf8.ValidString(text) {
		reason = "is not UTF-8 text"
	}
	if reason == "" {
		r.known[name] = text
	}
	return text, reason
}

// variable returns a variable of the environment.
func (r *references) variable(name string) (text, reason string) {
	for _, entry := range slices.Backward(r.environ) {
		if known, value, ok := strings.Cut(entry, "="); ok && known == name && name != "" {
			return value, ""
		}
	}
	return "", "is not set in the environment"
}

// file returns the content of a file without the line break at its end.
func (r *references) file(name string) (text, reason string) {
	if name == "" {
		return "", "names no file"
	}
	path, err := filepath.Abs(r.of.Resolve(name))
	if err != nil {
		return "", oneLine(err.Error())
	}
	r.of.files = append(r.of.files, path)
	data, reason := content(osDirectory{}, path, maxReferencedBytes)
	if reason == "" && len(data) > maxReferencedBytes {
		reason = fmt.Sprintf("is larger than %d bytes", maxReferencedBytes)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), reason
}

// hide takes secrets out of faults: what is said of the setting of one must not have five characters of it in a row,
// and nothing that is said of others a dozen.
func (f *File) hide(faults Errors) Errors {
	for _, e := range faults {
		for _, s := range f.secrets {
			most := maxShownElsewhere
			if strings.HasPrefix(e.Key, s.key) || strings.HasPrefix(s.key, e.Key) {
				most = maxShown
			}
			if s.isIn(e.Reason, most) {
				e.Reason = fmt.Sprintf("what %s stands for does not fit here, and is not shown", s.name)
				e.Err = classOf(e.Err)
				break
			}
		}
	}
	return faults
}

// isIn reports whether a text has more than some bytes of a secret in a row.
func (s secret) isIn(text string, most int) bool {
	if len(s.text) <= most {
		return len(s.text) > 1 && strings.Contains(text, s.text)
	}
	for i := range len(s.text) - most {
		if strings.Contains(text, s.text[i:i+most+1]) {
			return true
		}
	}
	return false
}

// classOf returns the class of a fault without its cause.
func classOf(err error) error {
	for _, class := range []error{ErrRead, ErrSyntax, ErrUnknownKey, ErrBadValue} {
		if errors.Is(err, class) {
			return class
		}
	}
	return ErrInvalid
}

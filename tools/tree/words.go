// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	_ "embed"
	"errors"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The nouns of the code are the field's, or this project's and then in the glossary: [nouns] goes from the code to the
// lists, as [glossary] goes from the list to the code.

// fieldWords are the words that need no explanation: those of Go's library, of the documents of the originals, of TCP,
// Paxos, CRDTs, queues and OpenTelemetry.
//
//go:embed words.txt
var fieldWords string

// rooms are the directories whose names are checked. One is added when its names have been gone through.
func rooms() []string {
	return []string{
		"allocation", "client", "client/internal/broker", "config", "config/field", "ddata", "ddata/durable",
		"ddata/durable/internal/disk", "ddata/internal/table", "ddata/services/internal/reconciler", "ddata/services/pubsub",
		"ddata/services/registry", "ddata/store", "discovery", "discovery/bootstrap", "discovery/dns", "discovery/etcd",
		"discovery/follow", "discovery/kubernetes", "discovery/multicast", "downing", "downing/lease", "downing/lease/etcd",
		"downing/lease/file", "downing/lease/kubernetes", "downing/lease/majority", "downing/lease/memory", "fd", "gateway",
		"gateway/internal/exchange", "gossip", "machine", "machine/component", "plugins", "plugins/host", "plugins/sdk", "rpc",
		"sharding", "sharding/delivery", "sharding/delivery/internal/producer", "sharding/delivery/internal/retry",
		"sharding/delivery/internal/workpool", "sharding/epoch", "sharding/internal/asking", "sharding/internal/cell",
		"sharding/internal/census", "sharding/internal/dispatch", "sharding/internal/explain", "sharding/internal/hosting",
		"sharding/internal/leases", "sharding/internal/notes", "sharding/internal/passivation",
		"sharding/internal/remembering", "sharding/internal/runtime", "sharding/internal/storecalls",
		"sharding/internal/strategy", "sharding/internal/telemetry", "sharding/internal/timers", "sharding/internal/window",
		"sharding/internal/workers", "sharding/reminder", "sharding/singleton", "sharding/state", "sharding/state/eventlog",
		"transport", "transport/session",
	}
}

var (
	camel      = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)
	withNumber = regexp.MustCompile(`^[a-z][A-Za-z]*[a-z]\d$`)
)

// nouns demands that the last word of each exported type, each struct and each package of a room is in words.txt or in
// the glossary, and that no function there is told from another one by a number.
func nouns(r *Repository) ([]Fault, error) {
	known, err := knownWords(r)
	if errors.Is(err, errGlossary) {
		return nil, nil // The check of the glossary says so.
	}
	if err != nil {
		return nil, err
	}
	var faults []Fault
	for _, f := range r.Files {
		if f.Test || f.Generated || !slices.Contains(rooms(), f.Dir()) {
			continue
		}
		if noun := path.Base(f.Dir()); !known[noun] && path.Base(f.Name) == "doc.go" {
			faults = append(faults, unknownWord(r, f.Syntax.Name, "package "+noun, noun))
		}
		for _, d := range f.Syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if withNumber.MatchString(d.Name.Name) {
					faults = append(faults, r.at(d.Pos(), "%s is told from others by a number: say what it does", d.Name.Name))
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if t, ok := s.(*ast.TypeSpec); ok && counts(t) && !known[nounOf(t.Name.Name)] {
						faults = append(faults, unknownWord(r, t.Name, t.Name.Name, nounOf(t.Name.Name)))
					}
				}
			}
		}
	}
	return faults, nil
}

func unknownWord(r *Repository, at ast.Node, what, noun string) Fault {
	return r.at(at.Pos(), "%s: %q is in no list: use the field's word (tools/tree/words.txt), or explain it in the glossary of %s",
		what, noun, architecture)
}

// counts reports whether a type is one whose noun counts.
func counts(t *ast.TypeSpec) bool {
	_, isStruct := t.Type.(*ast.StructType)
	return t.Name.IsExported() || isStruct
}

// nounOf returns the last word of a name, in lower case.
func nounOf(name string) string {
	parts := camel.FindAllString(name, -1)
	return strings.ToLower(parts[len(parts)-1])
}

// errGlossary says that the glossary cannot be read.
var errGlossary = errors.New("the glossary cannot be read")

// knownWords returns the words of words.txt, and of the glossary: each row's last one, and the noun of its name in Go.
func knownWords(r *Repository) (map[string]bool, error) {
	known := map[string]bool{}
	for line := range strings.Lines(fieldWords) {
		if !strings.HasPrefix(line, "#") {
			for word := range strings.FieldsSeq(line) {
				known[word] = true
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(r.Root, architecture))
	if err != nil {
		return nil, err
	}
	rows, err := rowsUnder(string(text), "Glossary", 3)
	if err != nil {
		return nil, errGlossary
	}
	for _, row := range rows {
		fields := strings.Fields(strings.TrimSuffix(row[0], "*"))
		known[fields[len(fields)-1]] = true
		name := strings.Trim(row[2], "`")
		known[nounOf(name[strings.LastIndexAny(name, "./")+1:])] = true
	}
	return known, nil
}

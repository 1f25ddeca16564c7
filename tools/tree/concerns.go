// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// A type has one concern, and its fields show it. The check collects what works on each struct
// ([Repository.structs]): its methods, and the functions of its package that take it first, which are methods by
// another name. Two of them belong together when they use one field or one calls the other; what more than half of all
// use (a mutex, a clock, a configuration) says nothing and is left out ([structure.parts]). Many of them, or several
// large parts, are a question with an answer to be found by people, not a fault: the types of which it is known
// stand in [questions] with their numbers, which may only become smaller.

const (
	operationsAsked = 25 // a type with no more is not looked at
	maxOperations   = 40 // more are a question
	maxPart         = 5  // two parts with more operations each are a question
	questionsFile   = "tools/tree/questions.go"
)

// Question is what is known of a type that may be more than one concern.
type Question struct {
	Operations int    // its methods, and the functions of its package that take it first
	Parts      int    // components of more than five operations
	Cut        string // fields of the part that would be a type of its own; empty when the fields show none
	Kept       string // why it stays one type, when that has been looked at; it may still not grow
}

// structure is a struct type of the production code with what works on it.
type structure struct {
	pos        token.Pos
	fields     map[string]bool
	embedded   []string                   // names of the types embedded, without their packages
	operations map[string]map[string]bool // names of fields and operations that each operation uses
	order      []string                   // operations as they are met
}

// part is a component: operations that belong together, and the fields that they share.
type part struct{ operations, fields []string }

func typeConcerns(r *Repository) []Fault {
	var faults []Fault
	found := map[string]bool{}
	structs := r.structs()
	for _, name := range slices.Sorted(maps.Keys(structs)) {
		s := structs[name]
		now, isQuestion := s.question()
		if !isQuestion {
			continue
		}
		found[name] = true
		known, listed := r.Questions[name]
		switch grown := now.Operations > known.Operations || now.Parts > known.Parts; {
		case grown && listed:
			faults = append(faults, r.at(s.pos, "%s has grown to %d methods and functions in %d parts, %d in %d are in %s: give what is new a type of its own%s",
				name, now.Operations, now.Parts, known.Operations, known.Parts, questionsFile, s.suggestion()))
		case grown:
			faults = append(faults, r.at(s.pos, "%s has %d methods and functions that take it first, in %d parts: cut it by its fields%s",
				name, now.Operations, now.Parts, s.suggestion()))
		case now.Operations < known.Operations || now.Parts < known.Parts:
			faults = append(faults, Fault{File: questionsFile, Text: fmt.Sprintf("%s has %d methods and functions in %d parts: lower its numbers to these",
				name, now.Operations, now.Parts)})
		default:
			faults = append(faults, s.staleCut(name, known.Cut)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Questions)) {
		if !found[name] {
			faults = append(faults, Fault{File: questionsFile, Text: name + " is no question any more, take it out"})
		}
	}
	return faults
}

// staleCut finds what a cut names that the type does not have any more.
func (s *structure) staleCut(name, cut string) []Fault {
	for field := range strings.FieldsSeq(cut) {
		if !s.fields[field] {
			return []Fault{{File: questionsFile, Text: fmt.Sprintf("the cut of %s names %s, which is no field of it", name, field)}}
		}
	}
	return nil
}

// structs returns the structs of the production code, by directory and name.
func (r *Repository) structs() map[string]*structure {
	structs := map[string]*structure{}
	for f, decl := range r.production() {
		d, isTypes := decl.(*ast.GenDecl)
		if !isTypes {
			continue
		}
		for _, spec := range d.Specs {
			if spec, ok := spec.(*ast.TypeSpec); ok {
				if body, ok := spec.Type.(*ast.StructType); ok {
					structs[f.Dir()+"."+spec.Name.Name] = newStructure(spec, body)
				}
			}
		}
	}
	for f, decl := range r.production() {
		fn, isFunc := decl.(*ast.FuncDecl)
		if !isFunc {
			continue
		}
		receiver := operand(fn)
		if receiver == nil {
			continue
		}
		if s := structs[f.Dir()+"."+baseName(receiver.Type)]; s != nil && !constructs(fn) {
			s.add(fn, receiver)
		}
	}
	for name, s := range structs {
		s.promote(structs, name[:strings.LastIndexByte(name, '.')+1])
	}
	return structs
}

// production yields the declarations of the production code.
func (r *Repository) production() func(func(*File, ast.Decl) bool) {
	return func(yield func(*File, ast.Decl) bool) {
		for _, f := range r.Files {
			if f.Test || f.Generated {
				continue
			}
			for _, decl := range f.Syntax.Decls {
				if !yield(f, decl) {
					return
				}
			}
		}
	}
}

// operand returns what a function works on: its receiver, or its first parameter, a context before it left out.
func operand(fn *ast.FuncDecl) *ast.Field {
	if fn.Recv != nil {
		return fn.Recv.List[0]
	}
	for _, param := range fn.Type.Params.List {
		if selector, ok := param.Type.(*ast.SelectorExpr); !ok || selector.Sel.Name != "Context" {
			return param
		}
	}
	return nil
}

// constructs says whether a function makes something new of what it is given.
func constructs(fn *ast.FuncDecl) bool {
	return fn.Recv == nil && (strings.HasPrefix(fn.Name.Name, "New") || strings.HasPrefix(fn.Name.Name, "new"))
}

func newStructure(spec *ast.TypeSpec, body *ast.StructType) *structure {
	s := &structure{pos: spec.Pos(), fields: map[string]bool{}, operations: map[string]map[string]bool{}}
	for _, field := range body.Fields.List {
		for _, name := range field.Names {
			s.fields[name.Name] = true
		}
		if len(field.Names) == 0 {
			name := embeddedName(field.Type)
			s.fields[name] = true
			s.embedded = append(s.embedded, name)
		}
	}
	return s
}

// embeddedName returns the name of a field that is embedded.
func embeddedName(t ast.Expr) string {
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if selector, ok := t.(*ast.SelectorExpr); ok {
		return selector.Sel.Name
	}
	return baseName(t)
}

// add notes an operation with the names that it uses of the value that it works on, and the functions to which it
// gives that value first. One that is declared for several platforms is one.
func (s *structure) add(fn *ast.FuncDecl, receiver *ast.Field) {
	uses := s.operations[fn.Name.Name]
	if uses == nil {
		uses = map[string]bool{}
		s.operations[fn.Name.Name] = uses
		s.order = append(s.order, fn.Name.Name)
	}
	if len(receiver.Names) == 0 || fn.Body == nil {
		return
	}
	is := func(e ast.Expr) bool {
		id, ok := ast.Unparen(e).(*ast.Ident)
		return ok && id.Name == receiver.Names[0].Name
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if is(n.X) {
				uses[n.Sel.Name] = true
			}
		case *ast.CallExpr:
			if name := baseName(n.Fun); name != "" && slices.ContainsFunc(n.Args, is) {
				uses[name] = true
			}
		}
		return true
	})
}

// promote turns the use of what an embedded struct of the same package has into the use of that struct. Of a struct
// of another package nothing is known, and what is used of it is left out.
func (s *structure) promote(structs map[string]*structure, prefix string) {
	for _, name := range s.embedded {
		inner := structs[prefix+name]
		if inner == nil {
			continue
		}
		for _, uses := range s.operations {
			for used := range uses {
				if !s.fields[used] && s.operations[used] == nil && (inner.fields[used] || inner.operations[used] != nil) {
					delete(uses, used)
					uses[name] = true
				}
			}
		}
	}
}

// question returns the numbers of a type, and whether they are a question.
func (s *structure) question() (Question, bool) {
	if len(s.order) <= operationsAsked {
		return Question{}, false
	}
	large := s.large()
	q := Question{Operations: len(s.order), Parts: len(large)}
	return q, q.Operations > maxOperations || q.Parts > 1
}

// cut returns the part that would best be a type of its own; nil when the fields show none. It is the second of the
// large parts; where all hangs together, it is grown from single fields, and has those whose operations are most by
// themselves.
func (s *structure) cut() *part {
	if large := s.large(); len(large) > 1 && len(large[1].fields) > 0 {
		return &large[1]
	}
	var best *part
	score := 0
	users := s.users()
	fields := slices.DeleteFunc(slices.Sorted(maps.Keys(s.fields)), func(f string) bool { return len(users[f]) == 0 || s.hub(users[f]) })
	for _, first := range fields {
		grown, gain := s.apart([]string{first}, users)
		for {
			next, more := grown, gain
			for _, field := range fields {
				if slices.Contains(grown.fields, field) {
					continue
				}
				if wider, n := s.apart(append(slices.Clone(grown.fields), field), users); n > more {
					next, more = wider, n
				}
			}
			if more == gain || len(next.operations) > len(s.order)/2 {
				break
			}
			grown, gain = next, more
		}
		if len(grown.operations) > maxPart && gain > score {
			best, score = &grown, gain
		}
	}
	return best
}

// apart returns the operations that use nothing but some fields, and one another, with how many those are more than
// the others that use one of the fields.
func (s *structure) apart(fields []string, users map[string][]string) (part, int) {
	p := part{fields: fields}
	others := 0
	inside := map[string]bool{}
	for _, field := range fields {
		inside[field] = true
	}
	for before := -1; before != len(p.operations); {
		before, others, p.operations = len(p.operations), 0, nil
		for _, name := range s.order {
			touches, leaves := false, false
			for used := range s.operations[name] {
				touches = touches || inside[used]
				leaves = leaves || users[used] != nil && !inside[used] && !(s.fields[used] && s.hub(users[used]))
			}
			if touches && !leaves {
				inside[name] = true
				p.operations = append(p.operations, name)
			} else if touches && slices.ContainsFunc(fields, func(f string) bool { return s.operations[name][f] }) {
				others++
			}
		}
	}
	slices.Sort(p.fields)
	return p, len(p.operations) - others
}

// suggestion returns the end of a sentence that says of what a type of its own could be made, and names the first few
// of its operations.
func (s *structure) suggestion() string {
	const shown = 6
	cut := s.cut()
	if cut == nil {
		return ""
	}
	names, more := cut.operations, ""
	if len(names) > shown {
		names, more = names[:shown], " …"
	}
	return fmt.Sprintf("; a cut would be the fields %s, with %s%s", strings.Join(cut.fields, " "), strings.Join(names, " "), more)
}

// large returns the parts that are a question, the largest first.
func (s *structure) large() []part {
	parts := slices.DeleteFunc(s.parts(), func(p part) bool { return len(p.operations) <= maxPart })
	slices.SortStableFunc(parts, func(a, b part) int { return len(b.operations) - len(a.operations) })
	return parts
}

// users returns which operations use each field and each operation.
func (s *structure) users() map[string][]string {
	users := map[string][]string{}
	for _, name := range s.order {
		for used := range s.operations[name] {
			if s.fields[used] || s.operations[used] != nil {
				users[used] = append(users[used], name)
			}
		}
	}
	return users
}

// hub says whether so many operations use a name that it says nothing about which of them belong together: more than
// half.
func (s *structure) hub(users []string) bool { return len(users)*2 > len(s.order) }

// parts returns the components of the graph of operations and the names that they use, without hubs.
func (s *structure) parts() []part {
	users := s.users()
	var parts []part
	seen := map[string]bool{}
	for _, first := range s.order {
		if seen[first] {
			continue
		}
		seen[first] = true
		p := part{operations: []string{first}}
		fields := map[string]bool{}
		for i := 0; i < len(p.operations); i++ {
			near := []string{p.operations[i]}
			for _, used := range slices.Sorted(maps.Keys(s.operations[p.operations[i]])) {
				if users[used] == nil || s.hub(users[used]) {
					continue
				}
				fields[used] = s.fields[used]
				near = append(append(near, used), users[used]...)
			}
			if callers := users[p.operations[i]]; !s.hub(callers) {
				near = append(near, callers...)
			}
			for _, name := range near {
				if s.operations[name] != nil && !seen[name] {
					seen[name] = true
					p.operations = append(p.operations, name)
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if fields[name] {
				p.fields = append(p.fields, name)
			}
		}
		parts = append(parts, p)
	}
	return parts
}

// receiverOf returns the name of the type of a method's receiver.
func receiverOf(fn *ast.FuncDecl) string { return baseName(fn.Recv.List[0].Type) }

// baseName returns the name of a type of the package itself, without a pointer and without
// type parameters; none for any other type.
func baseName(t ast.Expr) string {
	for {
		switch of := t.(type) {
		case *ast.StarExpr:
			t = of.X
		case *ast.ParenExpr:
			t = of.X
		case *ast.IndexExpr:
			t = of.X
		case *ast.IndexListExpr:
			t = of.X
		case *ast.Ident:
			return of.Name
		default:
			return ""
		}
	}
}

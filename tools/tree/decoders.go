// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// What others send is decoded by functions that are named so and take bytes or a reader. Each is held to what it may allocate by a test
// of its package that calls package frugal with it, or with what calls it; or its package is named here with its reason.

// frugalDir is the package by which decoders are measured.
const frugalDir = "internal/patience/frugal"

// unmeasured are the packages whose decoders are not measured, by the beginning of their directories, and single functions of others.
func unmeasured() map[string]string {
	const (
		local  = "it reads files of this machine, which its operator or the node has written"
		asked  = "it reads the answers of a server that the operator names, whose bytes are bounded"
		codec  = "it is a codec for messages of programs, who choose the types; what is decoded has the size of a message at most"
		inside = "it reads what the package before it has measured"
		small  = "it reads a text of some bytes"
		values = "it hands values to their types, whose decoders are measured; what a type of a program allocates is for the program"
		tests  = "it is for tests"
	)
	return map[string]string{
		"bench": tests, "examples": tests, "tools": tests, "simulation": tests, "membership/membershipsim": tests, "fd/fdtest": tests, "plugins/plugintest": tests,
		"sharding/internal/simulation": tests, "sharding/internal/statesim": tests, "transport/transporttest": tests, "plugins/internal/wiretest": tests,
		"cluster": local, "config": local, "ddata/durable": local, "downing/lease/file": local, "discovery/file": local, "discovery/dns": asked,
		"membership/internal/datadir": local, "transport/bearer": local, "transport/mutual": local, "sharding/state/bolt": local, "sharding/remember": local,
		"discovery/consul": asked, "discovery/etcd": asked, "discovery/kubernetes": asked, "downing/lease/kubernetes": asked,
		"discovery/multicast": small, "downing": small, "gossip": small, "management": small, "sharding/epoch": small, "allocation": small, "discovery": small,
		"ddata/services/pubsub": codec, "sharding": codec, "sharding/delivery": codec, "sharding/state": codec, "sharding/typed": codec, "sharding/internal/background": codec,
		"membership": inside, "machine": inside, "transport/grpc": inside, "transport/internal/tcp": inside,
		"ddata/internal/wire DecodeRecord": local, "ddata/internal/wire decodeValue": values,
		"plugins": "a plugin is a program of the operator; its answers are bounded in size",
	}
}

// decoderName matches the names of functions that decode.
var decoderName = regexp.MustCompile(`^(D|d)ecode|^(P|p)arse|^(U|u)nmarshal`)

// packageCode are the functions of a package, by name.
type packageCode struct {
	decoders map[string]*ast.FuncDecl
	calls    map[string][]string // What each function names.
	measured []string            // What tests that measure name.
}

func decoders(r *Repository) []Fault {
	packages := map[string]*packageCode{}
	for _, f := range r.Files {
		code := packages[f.Dir()]
		if code == nil {
			code = &packageCode{decoders: map[string]*ast.FuncDecl{}, calls: map[string][]string{}}
			packages[f.Dir()] = code
		}
		code.add(f)
	}
	var faults []Fault
	reasons := unmeasured()
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		if dir == frugalDir || reasonOf(reasons, dir) {
			continue
		}
		code := packages[dir]
		covered := code.reached()
		for _, name := range slices.Sorted(maps.Keys(code.decoders)) {
			if !covered[name] && reasons[dir+" "+name] == "" {
				faults = append(faults, r.at(code.decoders[name].Pos(), "%s decodes, and no test measures what it allocates: call %s, or name the package in decoders.go", name, frugalDir))
			}
		}
	}
	return faults
}

// reasonOf reports whether there is a reason for the directory or one above it.
func reasonOf(reasons map[string]string, dir string) bool {
	if reasons[dir] != "" {
		return true
	}
	for above := range reasons {
		// The packages within a module that decode what comes over the wire have to be named themselves.
		if strings.HasPrefix(dir, above+"/") && !strings.HasSuffix(dir, "/wire") {
			return true
		}
	}
	return false
}

func (c *packageCode) add(f *File) {
	measures := f.Test && slices.ContainsFunc([]string{"frugal.Require", "frugal.RequireInputs", "frugal.RequireFactor"}, func(name string) bool { return calling(f.Syntax, name) })
	if measures {
		c.measured = append(c.measured, named(f.Syntax)...)
	}
	if f.ForTests() || f.Generated {
		return
	}
	for _, decl := range f.Syntax.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		name := fn.Name.Name
		c.calls[name] = append(c.calls[name], named(fn.Body)...)
		if decoderName.MatchString(name) && takesBytes(fn) {
			c.decoders[name] = fn
		}
	}
}

// reached are the functions that tests measure, by themselves or through others.
func (c *packageCode) reached() map[string]bool {
	seen := map[string]bool{}
	queue := c.measured
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if !seen[name] {
			seen[name] = true
			queue = append(queue, c.calls[name]...)
		}
	}
	return seen
}

// named are all names in a piece of code.
func named(n ast.Node) (all []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			all = append(all, id.Name)
		}
		return true
	})
	return all
}

// takesBytes reports whether a parameter of a function is bytes, or is read.
func takesBytes(fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(fn.Type.Params.List, func(p *ast.Field) bool {
		switch t := p.Type.(type) {
		case *ast.ArrayType:
			element, ok := t.Elt.(*ast.Ident)
			return ok && element.Name == "byte"
		case *ast.SelectorExpr:
			return t.Sel.Name == "Reader" || t.Sel.Name == "BufferSlice"
		}
		return false
	})
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// What others say gets into the log of a node as attributes, which every handler quotes, and never by the hundred.
// logTexts finds messages of a log that are not constants: handlers write these as they are. logLimits finds packages
// that take messages or requests and whose log is not limited.

// logNames are the names of what has a log.
var logNames = []string{"log", "Log", "logger", "Logger", "limited", "slog"} //nolint:gochecknoglobals // A table.

// logMethods are the methods that write a line, with the place of its message.
var logMethods = map[string]int{ //nolint:gochecknoglobals // A table.
	"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1, "Log": 2,
}

// ownLogs are the directories of what takes no messages of members: commands and what is only for tests, plugins, whose
// output the host limits, clients, and cluster, which hands its log to the others.
var ownLogs = []string{"tools", "bench", "examples", "internal", "plugins", "client", "cluster"} //nolint:gochecknoglobals // A table.

func isLogOfOthers(f *File) bool {
	first, _, _ := strings.Cut(f.Name, "/")
	return !slices.Contains(ownLogs, first) && !f.ForTests()
}

func logTexts(r *Repository) []Fault {
	var faults []Fault
	for _, f := range r.Files {
		if !isLogOfOthers(f) {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if text := logText(call); text != nil && !isFixed(text) {
				faults = append(faults, r.at(text.Pos(), "the message of a log is no constant: put what differs into attributes, or use gossip.Escape"))
			}
			return true
		})
	}
	return faults
}

// logText returns the message that a call writes into a log; nil if it writes into none.
func logText(call *ast.CallExpr) ast.Expr {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	place, known := logMethods[method.Sel.Name]
	if !known || len(call.Args) <= place {
		return nil
	}
	name := ""
	switch of := method.X.(type) {
	case *ast.Ident:
		name = of.Name
	case *ast.SelectorExpr:
		name = of.Sel.Name
	}
	if !slices.Contains(logNames, name) {
		return nil
	}
	return call.Args[place]
}

// isFixed reports whether a text is a literal, a name of one, or escaped.
func isFixed(text ast.Expr) bool {
	switch text := text.(type) {
	case *ast.BasicLit, *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return text.Sel.Name == "text"
	case *ast.BinaryExpr:
		return text.Op == token.ADD && isFixed(text.X) && isFixed(text.Y)
	case *ast.CallExpr:
		of, ok := text.Fun.(*ast.SelectorExpr)
		return ok && of.Sel.Name == "Escape"
	default:
		return false
	}
}

func logLimits(r *Repository) []Fault {
	given, limited := map[string]token.Pos{}, map[string]bool{}
	for _, f := range r.Files {
		if !isLogOfOthers(f) {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "WithLogger" {
					given[f.Dir()] = n.Pos()
				}
			case *ast.SelectorExpr:
				limited[f.Dir()] = limited[f.Dir()] || n.Sel.Name == "LimitLog"
			}
			return true
		})
	}
	var faults []Fault
	for dir, pos := range given {
		if !limited[dir] {
			faults = append(faults, r.at(pos, "the log is not limited: others could fill it; use machine.LimitLog"))
		}
	}
	return faults
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// Check is one rule over the whole tree.
type Check struct {
	Name string
	Why  string
	Run  func(*Repository) ([]Fault, error)
}

// Checks returns every rule, in the order in which they are reported.
func Checks() []Check {
	pure := func(run func(*Repository) []Fault) func(*Repository) ([]Fault, error) {
		return func(r *Repository) ([]Fault, error) { return run(r), nil }
	}
	return []Check{
		{"module-table", "the boundaries between modules are decided in docs/architecture.md", moduleTable},
		{"glossary", "a word that the code does not have any more misleads who looks for it", glossary},
		{"words", "a word that only its author knows is read as another one", nouns},
		{"internal", "an internal package has no promise between modules, which may be at different versions", pure(internalImports)},
		{"workspace", "go.work is the one list of modules", pure(workspace)},
		{"replaces", "each module builds by itself, offline and before any release", pure(replaces)},
		{"versions", "the workspace tests what users get only if all modules name the same versions", pure(versions)},
		{"module-files", "each module is published by itself, its papers included", pure(moduleFiles)},
		{"package-docs", "a long text has a file of its own, and a command says its name", pure(packageDocs)},
		{"examples", "what a user does first is shown, and compiled", pure(examples)},
		{"headers", "each file carries its licence", pure(headers)},
		{"file-heads", "a long file is read from the top, and says there what comes", pure(fileHeads)},
		{"type-concerns", "a line of a type that does everything may touch everything", pure(typeConcerns)},
		{"file-names", "a file is named by its concept", pure(fileNames)},
		{"comment-width", "a comment is read, and lines that nobody wrapped are not", pure(commentWidth)},
		{"directives", "an excuse for a linter that does not run excuses nothing", directives},
		{"todo", "what is not done is in the issue tracker", pure(todo)},
		{"core", "a core is a pure function of its inputs, so that a run can be repeated from its seed", pure(corePurity)},
		{"core-order", "the order of a map differs from run to run", coreOrder},
		{"optional", "a method of an optional interface with another signature compiles, and is never called", pure(optionalInterfaces)},
		{"quotes", "an oracle excuses only what users were told, and pages change", quotes},
		{"realtime", "a limit in real time ends on a busy machine before the code had its time", pure(realtime)},
		{"log-texts", "what others say is quoted in attributes, and not in the message of a log", pure(logTexts)},
		{"log-limits", "a log that others can fill hides what matters", pure(logLimits)},
		{"log-limiters", "limiters that each count in their own way leave out what others have to say", pure(logLimiters)},
		{"decoders", "a small message that makes a node take much memory ends it", pure(decoders)},
		{"sequential", "the race detector is left out only where it can find nothing", pure(sequential)},
	}
}

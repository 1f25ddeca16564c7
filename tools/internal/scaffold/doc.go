// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package scaffold writes the project of a new plugin: a strategy that works and has one
// place to change, its tests, and what builds it.
//
// A project is made of templates that lie in this package, those that all policies have in
// common and those of its policy, for its language. Files whose names end in .tmpl are
// templates of text/template; the others are written as they are. [Project.Files] makes the
// files, [Write] puts them into a directory, all of them or none.
//
// All functions may be called from any goroutine; none keeps state.
package scaffold

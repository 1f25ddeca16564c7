// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package platforms checks the types of the whole workspace as they are on other platforms.
//
// To build for a platform compiles everything that the project imports as well, which takes minutes for
// each, and finds what a check of the types finds in seconds: the declarations of all packages, from
// their sources, and the bodies of the functions of the project's own. What it cannot see are faults of the
// compiler and of assembly, of which the project has none.
package platforms

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package figures keeps the figures of docs/downing.md true. They are what commands print, and
// the page names the commands. [Render] runs these and returns the page with what they print;
// `make figures` writes the page so, which takes some minutes. The test of the package runs in
// seconds what is small of it, and fails where the page says something else.
//
// There are two sorts of figures on the page:
//
//   - a block of code that begins with "$ quorate simulate -exhaustive" has the output of this
//     command; a file that the command reads is a block of YAML on the page that begins with the
//     name of the file, as in "# quorum.yaml";
//   - a table between "<!-- Figures: NAME -->" and "<!-- End of figures. -->" is one of [tables].
package figures

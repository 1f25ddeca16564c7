// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"cmp"
	"runtime/debug"
	"strings"
	"sync"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// SchemaURL names the version of the semantic conventions of OpenTelemetry from which the names of spans, metrics and
// attributes are. Every scope of a node states it, and so can a backend translate the names.
const SchemaURL = semconv.SchemaURL

// project is what the paths of all modules of the project begin with.
const project = "github.com/quorate/quorate/"

// unversioned is the version of a module that was not built from a release.
const unversioned = "(devel)"

// buildInfo reads how the program was built, once: to read it takes long.
var buildInfo = sync.OnceValues(debug.ReadBuildInfo) //nolint:gochecknoglobals // It never changes.

// scopeVersion returns the version of the module that a scope belongs to, as the build of the program says.
func scopeVersion(scope string) string {
	info, ok := buildInfo()
	if !ok {
		return unversioned
	}
	return versionIn(info, scope)
}

// versionIn returns the version of the module in a build whose path is that of a scope, or the longest above it.
func versionIn(info *debug.BuildInfo, scope string) string {
	best := &debug.Module{}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if within(scope, m.Path) && len(m.Path) > len(best.Path) {
			best = m
		}
	}
	if best.Replace != nil {
		best = best.Replace
	}
	return cmp.Or(best.Version, unversioned)
}

// within reports whether a package is that of a module, or below it.
func within(scope, module string) bool {
	return strings.HasPrefix(module, project) && (scope == module || strings.HasPrefix(scope, module+"/"))
}

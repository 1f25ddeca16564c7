// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/quorate/quorate/plugins"
)

// Each policy has a row ([policies]). With the project it makes the values that templates have
// ([newValues]), among them which modules of Quorate a module in Go needs.

// policy is what the templates need to know of a policy.
type policy struct {
	about       string // What a plugin for it does, in words.
	constructor string // Its name in plugins, sdk and sdktest.
	contract    string // The file of its service in the contract.
	module      string // The module of its interface.
	example     string // The setting of the cluster's file that chooses a plugin, with %s for its name.

	// The suites, each with the type of what it tests and the packages that it takes.
	suite, kind     string
	value, detector string // Of the plain value, where that is another one, and what it is of a strategy.
	imports         []string
}

func policies() map[plugins.Policy]policy {
	return map[plugins.Policy]policy{
		plugins.Downing: {
			about: "it decides which side of a partition survives", constructor: "Downing", contract: "downing.proto",
			module: "downing", example: "downing: { strategy: %s }",
			suite: "downingtest.TestProvider", kind: "downing.Provider", imports: []string{"downing", "downing/downingtest"},
		},
		plugins.Allocation: {
			about: "it decides on which node each shard lives", constructor: "Allocation", contract: "allocation.proto",
			module: "allocation", example: "sharding: { allocation: { strategy: %s } }",
			suite: "allocationtest.TestStrategy", kind: "allocation.Strategy", imports: []string{"allocation", "allocation/allocationtest"},
		},
		plugins.FailureDetector: {
			about: "it decides whether nodes are believed alive", constructor: "FailureDetector", contract: "failuredetector.proto",
			module: "fd", example: "membership: { failure-detector: { strategy: %s } }",
			suite: "fdtest.TestJudge", kind: "fd.Judge", value: "fdtest.TestDetector", detector: "fd.Detector",
			imports: []string{"fd", "fd/fdtest"},
		},
		plugins.JoinDecider: {
			about: "it decides what a node without a cluster does next", constructor: "JoinDecider", contract: "joindecider.proto",
			module: "discovery", example: "membership: { seed-nodes: [\"127.0.0.1:7946\"], discovery: { methods: [static], join-decider: %s } }",
			suite: "bootstraptest.TestJoinDecider", kind: "bootstrap.JoinDecider",
			imports: []string{"discovery/bootstrap", "discovery/bootstrap/bootstraptest"},
		},
		plugins.Discovery: {
			about: "it finds the contact points of a service", constructor: "Discovery", contract: "discovery.proto",
			module: "discovery", example: "membership: { discovery: { methods: [%s] } }",
			suite: "discoverytest.TestDiscovery", kind: "discovery.Discovery", imports: []string{"discovery", "discovery/discoverytest"},
		},
	}
}

// goVersion is the version of Go that the modules of Quorate need.
const goVersion = "1.26.0"

// values are what templates may name.
type values struct {
	Project

	About, Constructor, Example, GoVersion string

	ValueSuite, ValueType, Value, WireSuite, WireType string
	TestImports, Requires, Replaces                   []string
}

func newValues(p Project, about policy) (values, error) {
	v := values{
		Project: p, About: about.about, Constructor: about.constructor, GoVersion: goVersion,
		Example:    fmt.Sprintf(about.example, p.Name),
		ValueSuite: about.suite, ValueType: about.kind, Value: "strategy", WireSuite: about.suite, WireType: about.kind,
		TestImports: append(slices.Clone(about.imports), "plugins", "plugins/plugintest", "plugins/sdk", "plugins/sdk/sdktest"),
		Requires:    []string{about.module, "plugins", "plugins/plugintest"},
	}
	if about.value != "" { // A detector is made by its factory.
		v.ValueSuite, v.ValueType, v.Value = about.value, about.detector, "strategy()"
	}
	if p.Checkout == "" {
		return v, nil
	}
	v.Release = "" // The checkout is used instead.
	var err error
	v.Replaces, err = modulesIn(p.Checkout)
	return v, err
}

// modulesIn lists the modules of a checkout.
func modulesIn(checkout string) ([]string, error) {
	file := filepath.Join(checkout, "go.work")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s is no checkout of Quorate: %w", checkout, err)
	}
	var modules []string
	for _, found := range regexp.MustCompile(`(?m)^\t\./(\S+)$`).FindAllSubmatch(text, -1) {
		modules = append(modules, strings.TrimSuffix(string(found[1]), "/"))
	}
	if !slices.Contains(modules, "plugins/plugintest") {
		return nil, fmt.Errorf("%s is no checkout of Quorate: its go.work has no plugins/plugintest", checkout)
	}
	return modules, nil
}

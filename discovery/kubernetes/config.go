// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

// The settings, their defaults and their check; below them, what names and selectors look
// like, which lookups check too.

import (
	"strings"
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery/kubernetes/kubeapi"
)

// The sources of contact points, for [Config.Source].
const (
	// SourcePods makes contact points of the pods with certain labels.
	SourcePods = "pods"
	// SourceEndpointSlices makes contact points of the endpoints of a Service.
	SourceEndpointSlices = "endpoint-slices"
)

// The families of addresses, for [Config.IPFamily].
const (
	// FamilyAny takes the first address of a pod. Of an endpoint with addresses in several
	// slices it takes an address of version 4 before one of version 6.
	FamilyAny = ""
	// FamilyIPv4 takes addresses of version 4 alone.
	FamilyIPv4 = "ipv4"
	// FamilyIPv6 takes addresses of version 6 alone.
	FamilyIPv6 = "ipv6"
)

// placeholder stands for the name of the service that is looked up, in
// [Config.Selector] and [Config.Service].
const placeholder = "%s"

// maxSelectorBytes is the longest selector. With a longer one the server would refuse the URL.
const maxSelectorBytes = 1024

// Config is what an operator sets. The zero value is not valid; start from [Default].
type Config struct {
	// Source is where contact points come from: "pods" or "endpoint-slices".
	Source string `koanf:"source" oneof:"pods|endpoint-slices"`

	// Selector is the label selector of the pods, for the source "pods"; "%s" in it
	// stands for the name of the service that is looked up. All pods that the selector fits
	// are contact points.
	Selector string `koanf:"selector"`

	// Service is the name of the Service, for the source "endpoint-slices"; "%s" in it
	// stands for the name of the service that is looked up.
	Service string `koanf:"service"`

	// IPFamily chooses among several addresses of a pod: "ipv4", "ipv6", or empty for
	// the first one. A pod is one contact point in any case.
	IPFamily string `koanf:"ip-family"`

	// ReadyOnly leaves out pods that are not ready. Where a node is ready only after it has
	// joined, as is usual, the first nodes would never find each other, and no cluster would
	// form.
	ReadyOnly bool `koanf:"ready-only"`

	// WatchTimeout is how long one watch lasts before it is renewed, from a second to
	// an hour. A short time costs requests; with a long time the watches stay unevenly
	// spread over the servers for longer after one of them was restarted.
	WatchTimeout time.Duration `koanf:"watch-timeout" range:"1s..1h"`

	// Config holds the namespace, where the API server is, the files of the token and of the
	// certificates, and the time limit of a request, which is for a watch the time until it
	// begins; a list of many pages may take six times as long.
	kubeapi.Config `koanf:",squash"`
}

// Default returns the settings for a pod: the pods labelled app.kubernetes.io/name
// with the name of the service, whether they are ready or not, in the namespace and with the
// rights of the service account.
func Default() Config {
	return Config{
		Source:       SourcePods,
		Selector:     "app.kubernetes.io/name=" + placeholder,
		Service:      placeholder,
		WatchTimeout: 5 * time.Minute,
		Config:       kubeapi.Default(),
	}
}

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(c.Source != SourcePods && c.Source != SourceEndpointSlices, "source",
		"%q is neither %q nor %q", c.Source, SourcePods, SourceEndpointSlices)
	faults.Refuse(c.Source == SourcePods && !isSelector(c.Selector), "selector",
		"%q is no label selector, write for instance app.kubernetes.io/name=%%s", field.Clip(c.Selector))
	faults.Refuse(c.Source == SourceEndpointSlices && !kubeapi.IsName(strings.ReplaceAll(c.Service, placeholder, "a")), "service",
		"%q is no name of a Service, write %%s for the name that is looked up", field.Clip(c.Service))
	faults.Refuse(c.IPFamily != FamilyAny && c.IPFamily != FamilyIPv4 && c.IPFamily != FamilyIPv6, "ip-family",
		"%q is none of %q, %q and empty", field.Clip(c.IPFamily), FamilyIPv4, FamilyIPv6)
	faults.Add(c.Config.Validate())
	faults.Add(field.Ranges(c))
	return faults.Err()
}

// isLabelValue reports whether a text may be the value of a label that is not empty.
func isLabelValue(text string) bool {
	return text != "" && len(text) <= 63 && strings.IndexByte("-_.", text[0]) < 0 &&
		strings.IndexByte("-_.", text[len(text)-1]) < 0 && strings.IndexFunc(text, notInLabel) < 0
}

func notInLabel(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}

// isSelector reports whether a text may be a label selector. The server parses it; isSelector
// refuses only a text that cannot be one.
func isSelector(text string) bool {
	return text != "" && len(text) <= maxSelectorBytes &&
		strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

// The settings, their defaults and their check; below them, what names and selectors look
// like, which lookups check too.

import (
	"strings"
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery/httpapi"
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

// selectorBytesMax is the longest selector. With a longer one the server would refuse the URL.
const selectorBytesMax = 1024

const (
	leastWatch = time.Second
	mostWatch  = time.Hour
)

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

	// Namespace is the namespace of the objects. Empty: that of the service account, which
	// is an error where Server is set.
	Namespace string `koanf:"namespace"`

	// IPFamily chooses among several addresses of a pod: "ipv4", "ipv6", or empty for
	// the first one. A pod is one contact point in any case.
	IPFamily string `koanf:"ip-family"`

	// ReadyOnly leaves out pods that are not ready. Where a node is ready only after it has
	// joined, as is usual, the first nodes would never find each other, and no cluster would
	// form.
	ReadyOnly bool `koanf:"ready-only"`

	// Server is the URL of the API server, such as "https://10.0.0.1:6443". Empty: the
	// one that the variables KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT of a
	// pod name. With http, which is for a proxy on the same machine, no token is sent.
	Server string `koanf:"server"`

	// WatchTimeout is how long one watch lasts before it is renewed, from a second to
	// an hour. A short time costs requests; with a long time the watches stay unevenly
	// spread over the servers for longer after one of them was restarted.
	WatchTimeout time.Duration `koanf:"watch-timeout" range:"1s..1h"`

	// Config holds the files of the token and of the certificates: where a name and Server
	// are empty, the file of the service account counts. RequestTimeout is, for a watch, the
	// time until it begins; a list of many pages may take six times as long.
	httpapi.Config `koanf:",squash"`
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
		Config:       httpapi.Default(),
	}
}

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(c.Source != SourcePods && c.Source != SourceEndpointSlices, "source",
		"%q is neither %q nor %q", c.Source, SourcePods, SourceEndpointSlices)
	faults.Refuse(c.Source == SourcePods && !isSelector(c.Selector), "selector",
		"%q is no label selector, write for instance app.kubernetes.io/name=%%s", clip(c.Selector))
	faults.Refuse(c.Source == SourceEndpointSlices && !isName(strings.ReplaceAll(c.Service, placeholder, "a")), "service",
		"%q is no name of a Service, write %%s for the name that is looked up", clip(c.Service))
	faults.Refuse(c.Namespace != "" && !isName(c.Namespace), "namespace", "%q is no name of a namespace", clip(c.Namespace))
	faults.Refuse(c.Namespace == "" && c.Server != "", "namespace", "it must be given where the server is given")
	faults.Refuse(c.IPFamily != FamilyAny && c.IPFamily != FamilyIPv4 && c.IPFamily != FamilyIPv6, "ip-family",
		"%q is none of %q, %q and empty", clip(c.IPFamily), FamilyIPv4, FamilyIPv6)
	if c.Server != "" {
		faults.Add(c.checkServer())
	}
	faults.Add(c.Config.Validate())
	faults.Refuse(c.WatchTimeout < leastWatch || c.WatchTimeout > mostWatch, "watch-timeout",
		"%v is not in the range from %v to %v", c.WatchTimeout, leastWatch, mostWatch)
	return faults.Err()
}

// checkServer refuses what is no URL of an API server, and a URL to which a token would go
// where others can read it on the way.
func (c Config) checkServer() error {
	u, err := httpapi.ParseURL("server", c.Server)
	switch {
	case err != nil:
		return err
	case u.Scheme == "http" && c.TokenFile != "":
		return field.Errorf("server", "%q is not encrypted, the token could be read on the way: write https", clip(c.Server))
	case u.Scheme == "http" && !httpapi.IsLocal(u):
		return field.Errorf("server", "%q is not encrypted and not on this machine: write https", clip(c.Server))
	}
	return nil
}

// isName reports whether a text is a name by RFC 1123, like the names of namespaces and
// Services: at most 63 letters in lower case, digits and hyphens.
func isName(text string) bool {
	return text != "" && len(text) <= 63 && text[0] != '-' && text[len(text)-1] != '-' &&
		strings.IndexFunc(text, notInName) < 0
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
	return text != "" && len(text) <= selectorBytesMax &&
		strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// clip cuts a text of unknown origin, for a message of one line.
func clip(text string) string {
	const shown = 200
	if len(text) > shown {
		return text[:shown] + "..."
	}
	return text
}

func notInName(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }

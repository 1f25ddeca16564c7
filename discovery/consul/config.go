// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consul

import (
	"strings"
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery/httpapi"
)

// placeholder stands for the name of the service that is looked up, in
// [Config.Service].
const placeholder = "%s"

const (
	maxNameBytes = 128
	maxTags      = 16
)

// Config is what an operator sets. The zero value is not valid; start from [Default].
type Config struct {
	// Address is the URL of a Consul agent. With http, and a token that is sent, the agent
	// must be on this machine, since the token could be read on the way to another one.
	Address string `koanf:"address"`

	// Service is the name under which nodes are registered; "%s" in it stands for the
	// name of the service that is looked up.
	Service string `koanf:"service"`

	// Tags are the tags of which a registration must have all; at most 16.
	Tags []string `koanf:"tags"`

	// Datacenter is the datacenter whose registrations count. Empty: that of the agent.
	Datacenter string `koanf:"datacenter"`

	// Passing leaves out registrations of which a health check does not pass. Consul keeps
	// the registrations of crashed nodes for days, which are contact points otherwise. The
	// check must be one of life and not of readiness: a node is ready only after it has
	// joined.
	Passing bool `koanf:"passing"`

	// Wait is how long the agent holds its answer back while there is no news, from a
	// second to 10 minutes. A short time costs requests.
	Wait time.Duration `koanf:"wait" range:"1s..10m"`

	// Config holds the file of the token of an access control list, the file of the
	// certificates of the agent, and how long the agent may take for an answer, beyond Wait.
	httpapi.Config `koanf:",squash"`
}

// Default returns the settings for the agent on this machine: what is registered under
// the name of the service and passes its checks.
func Default() Config {
	return Config{
		Address: "http://127.0.0.1:8500",
		Service: placeholder,
		Passing: true,
		Wait:    5 * time.Minute,
		Config:  httpapi.Default(),
	}
}

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Add(c.checkAddress())
	faults.Refuse(!isName(strings.ReplaceAll(c.Service, placeholder, "a")), "service",
		"%q is no name of a service, write %%s for the name that is looked up", field.Clip(c.Service))
	faults.Refuse(len(c.Tags) > maxTags, "tags", "%d are more than %d", len(c.Tags), maxTags)
	for _, tag := range c.Tags {
		faults.Refuse(!isText(tag), "tags", "%q is no tag of at most %d printable characters", field.Clip(tag), maxNameBytes)
	}
	faults.Refuse(c.Datacenter != "" && !isName(c.Datacenter), "datacenter", "%q is no name of a datacenter", field.Clip(c.Datacenter))
	faults.Add(c.Config.Validate())
	faults.Add(field.Ranges(c))
	return faults.Err()
}

// checkAddress refuses what is no address of an agent, and an address to which a token would
// go where others can read it on the way.
func (c Config) checkAddress() error {
	u, err := httpapi.ParseURL("address", c.Address)
	if err != nil {
		return err
	}
	if u.Scheme == "http" && c.TokenFile != "" && !httpapi.IsLocal(u) {
		return field.Errorf("address", "%q is not encrypted, the token could be read on the way: write https", field.Clip(c.Address))
	}
	return nil
}

// isName reports whether a text may be a part of a path: letters, digits, hyphens,
// underscores and dots, but not dots alone.
func isName(text string) bool {
	return len(text) <= maxNameBytes && strings.Trim(text, ".") != "" && strings.IndexFunc(text, notInName) < 0
}

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}

func isText(text string) bool {
	return text != "" && len(text) <= maxNameBytes &&
		strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

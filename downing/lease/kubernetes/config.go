// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"strings"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery/httpapi"
)

// Config is what an operator sets. The zero value is not valid; start from [Default].
type Config struct {
	// Namespace is the namespace of the leases. Empty: that of the service account, which is
	// an error where Server is set.
	Namespace string `koanf:"namespace"`

	// Server is the URL of the API server, such as "https://10.0.0.1:6443". Empty: the one
	// that the variables KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT of a pod
	// name. With http, which is for a proxy on the same machine, no token is sent.
	Server string `koanf:"server"`

	// Config holds the files of the token and of the certificates, where an empty name stands
	// for the file of the service account if Server is empty too, and the time limit of a
	// request. The limit of a keeper counts as well.
	httpapi.Config `koanf:",squash"`
}

// Default returns the settings for a pod: the namespace and the rights of its service account.
func Default() Config { return Config{Config: httpapi.Default()} }

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(c.Namespace != "" && !isName(c.Namespace), "namespace", "%q is no name of a namespace", clip(c.Namespace))
	faults.Refuse(c.Namespace == "" && c.Server != "", "namespace", "it must be given where the server is given")
	if c.Server != "" {
		faults.Add(c.checkServer())
	}
	faults.Add(c.Config.Validate())
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

// isName reports whether a text is a name by RFC 1123, like the names of namespaces.
func isName(text string) bool {
	return text != "" && len(text) <= 63 && text[0] != '-' && text[len(text)-1] != '-' &&
		strings.IndexFunc(text, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }) < 0
}

// clip cuts a text of unknown origin, for a message of one line.
func clip(text string) string {
	const shown = 200
	if len(text) > shown {
		return text[:shown] + "..."
	}
	return text
}

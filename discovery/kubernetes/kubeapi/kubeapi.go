// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery/httpapi"
)

// The settings and their check come first, then what a pod knows of its cluster, and at last what
// a refusal says.

// ServiceAccount is where a pod finds its credentials.
const ServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// ErrNotInCluster is wrapped by the error of [Config.Located] when no server is configured and
// the program does not run in a pod, or in one without a service account.
var ErrNotInCluster = errors.New("not in a pod with a service account")

// Config is what an operator sets about the way to the API server. The settings of whoever asks
// the server contain it, squashed into their own section.
type Config struct {
	// Namespace is the namespace of the objects. Empty: that of the service account, which
	// is an error where Server is set.
	Namespace string `koanf:"namespace"`

	// Server is the URL of the API server, such as "https://10.0.0.1:6443". Empty: the
	// one that the variables KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT of a
	// pod name. With http, which is for a proxy on the same machine, no token is sent.
	Server string `koanf:"server"`

	// Config holds the files of the token and of the certificates, where an empty name stands
	// for the file of the service account if Server is empty too, and the time limit of a
	// request.
	httpapi.Config `koanf:",squash"`
}

// Default returns the settings for a pod: the namespace and the rights of its service account.
func Default() Config { return Config{Config: httpapi.Default()} }

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(c.Namespace != "" && !IsName(c.Namespace), "namespace", "%q is no name of a namespace", field.Clip(c.Namespace))
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
		return field.Errorf("server", "%q is not encrypted, the token could be read on the way: write https", field.Clip(c.Server))
	case u.Scheme == "http" && !httpapi.IsLocal(u):
		return field.Errorf("server", "%q is not encrypted and not on this machine: write https", field.Clip(c.Server))
	}
	return nil
}

// IsName reports whether a text is a name by RFC 1123, like the names of namespaces and
// Services: at most 63 letters in lower case, digits and hyphens.
func IsName(text string) bool {
	return text != "" && len(text) <= 63 && text[0] != '-' && text[len(text)-1] != '-' &&
		strings.IndexFunc(text, notInName) < 0
}

func notInName(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }

// Located returns the settings with what a pod knows in place of what is not set: where the
// server is, which files hold the credentials, and the namespace. Account is the directory of the
// credentials, in a pod [ServiceAccount].
func (c Config) Located(account string) (Config, error) {
	if c.Server != "" {
		return c, nil
	}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return c, fmt.Errorf("%w: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: set server, namespace and token-file",
			ErrNotInCluster)
	}
	c.Server = "https://" + net.JoinHostPort(host, port)
	if c.TokenFile == "" {
		c.TokenFile = filepath.Join(account, "token")
	}
	if c.CAFile == "" {
		c.CAFile = filepath.Join(account, "ca.crt")
	}
	if c.Namespace != "" {
		return c, nil
	}
	data, err := httpapi.ReadFile(filepath.Join(account, "namespace"))
	if err != nil {
		return c, fmt.Errorf("%w: %w: set namespace, or let the pod have a service account", ErrNotInCluster, err)
	}
	c.Namespace = strings.TrimSpace(string(data))
	if !IsName(c.Namespace) {
		return c, fmt.Errorf("%w: %q is no name of a namespace, in %s: set namespace",
			ErrNotInCluster, field.Clip(c.Namespace), filepath.Join(account, "namespace"))
	}
	return c, nil
}

// Message returns what the server says in a refusal, cut when it is long; empty if it says
// nothing, or nothing that can be read.
func Message(refused *httpapi.StatusError) string {
	var status struct {
		Message string `json:"message"`
	}
	if refused.Type != "application/json" || json.Unmarshal(refused.Body, &status) != nil {
		return ""
	}
	return field.Clip(status.Message)
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

// The requests to the API server. First where the server is and which files hold the
// credentials, in a pod and elsewhere; then one request, and what a refusal says.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/discovery/httpapi"
)

// serviceAccount is where a pod finds its credentials.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// client asks one API server. It is safe for concurrent use.
type client struct {
	api       *httpapi.Client
	tokenFile string // the file of the token that is sent, for errors; empty if none is sent
}

// newClient returns the client of a configuration, and the namespace. In a pod, account
// is the directory of its credentials.
func newClient(c Config, account string) (*client, string, error) {
	if c.Server != "" {
		return clientOf(c.Server, c.Config), c.Namespace, nil
	}
	host, portNumber := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || portNumber == "" {
		return nil, "", fmt.Errorf("%w: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: set server, namespace and token-file",
			ErrNotInCluster)
	}
	if c.TokenFile == "" {
		c.TokenFile = filepath.Join(account, "token")
	}
	if c.CAFile == "" {
		c.CAFile = filepath.Join(account, "ca.crt")
	}
	found := clientOf("https://"+net.JoinHostPort(host, portNumber), c.Config)
	if c.Namespace != "" {
		return found, c.Namespace, nil
	}
	data, err := httpapi.ReadFile(filepath.Join(account, "namespace"))
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w: set namespace, or let the pod have a service account", ErrNotInCluster, err)
	}
	namespace := strings.TrimSpace(string(data))
	if !isName(namespace) {
		return nil, "", fmt.Errorf("%w: %q is no name of a namespace", ErrNotInCluster, clip(namespace))
	}
	return found, namespace, nil
}

// clientOf returns the client of a server. The server begins each answer at once, that to a
// watch too, so that the limit of a request also bounds the time to the header.
func clientOf(server string, c httpapi.Config) *client {
	return &client{tokenFile: c.TokenFile, api: httpapi.New(httpapi.Server{
		URL: server, Key: "server", Malformed: ErrMalformed, HeaderTimeout: c.RequestTimeout, Config: c,
	})}
}

// request is one question to the server.
type request struct {
	verb      string
	resource  resource
	namespace string
	query     url.Values
}

// get sends a request and returns the body of the answer, which is JSON, for the caller
// to close. The error is a [StatusError] if the server refuses.
func (c *client) get(ctx context.Context, r request) (io.ReadCloser, error) {
	answer, err := c.api.Get(ctx, r.resource.path(r.namespace)+"?"+r.query.Encode())
	if refused, ok := errors.AsType[*httpapi.StatusError](err); ok {
		var status struct {
			Message string `json:"message"`
		}
		if refused.Type == "application/json" {
			// A refusal whose body cannot be read is told by its code alone.
			_ = json.Unmarshal(refused.Body, &status)
		}
		return nil, c.refusal(r, refused.Code, status.Message)
	}
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

func (c *client) refusal(r request, code int, message string) *StatusError {
	return &StatusError{
		Code: code, Message: clip(message), Verb: r.verb, Group: r.resource.group, Resource: r.resource.name,
		Namespace: r.namespace, Credentials: c.tokenFile,
	}
}

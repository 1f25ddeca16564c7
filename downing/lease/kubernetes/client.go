// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

// The requests to the API server: first where the server is and which files hold the
// credentials, then the three requests, in the end what a refusal says.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/discovery/httpapi"
)

const (
	// serviceAccount is where a pod finds its credentials.
	serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"
	// answerBytesMax is the longest answer; an API server stores no longer objects.
	answerBytesMax = 1 << 20
)

// client asks one API server about the leases of a namespace.
type client struct {
	api       *httpapi.Client
	namespace string
}

// newClient returns the client of a configuration. In a pod, account is the directory of its
// credentials.
func newClient(c Config, account string) (*client, error) {
	if c.Server == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return nil, fmt.Errorf("%w: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: set server, namespace and token-file",
				ErrNotInCluster)
		}
		c.Server = "https://" + net.JoinHostPort(host, port)
		if c.TokenFile == "" {
			c.TokenFile = filepath.Join(account, "token")
		}
		if c.CAFile == "" {
			c.CAFile = filepath.Join(account, "ca.crt")
		}
	}
	if c.Namespace == "" {
		data, err := httpapi.ReadFile(filepath.Join(account, "namespace"))
		if err != nil {
			return nil, fmt.Errorf("%w: %w: set namespace, or let the pod have a service account", ErrNotInCluster, err)
		}
		c.Namespace = strings.TrimSpace(string(data))
	}
	if !isName(c.Namespace) {
		return nil, fmt.Errorf("%w: %q is no name of a namespace", ErrNotInCluster, clip(c.Namespace))
	}
	return &client{namespace: c.Namespace, api: httpapi.New(httpapi.Server{
		URL: c.Server, Key: "server", Malformed: ErrMalformed, HeaderTimeout: c.RequestTimeout, Config: c.Config,
	})}, nil
}

func (c *client) path() string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + c.namespace + "/leases"
}

func (c *client) get(ctx context.Context, name string) (*object, error) {
	answer, err := c.api.Get(ctx, c.path()+"/"+name)
	return c.read(answer, err, "get", name)
}

func (c *client) create(ctx context.Context, name string, o *object) (*object, error) {
	return c.send(ctx, http.MethodPost, c.path(), "create", name, o)
}

// update replaces a lease, if its resource version is that of o.
func (c *client) update(ctx context.Context, name string, o *object) (*object, error) {
	return c.send(ctx, http.MethodPut, c.path()+"/"+name, "update", name, o)
}

func (c *client) send(ctx context.Context, method, path, verb, name string, o *object) (*object, error) {
	body, err := o.encode()
	if err != nil {
		return nil, err
	}
	answer, err := c.api.Send(ctx, method, path, body)
	return c.read(answer, err, verb, name)
}

// read returns the object of an answer, or the refusal.
func (c *client) read(answer *http.Response, err error, verb, name string) (*object, error) {
	if refused, ok := errors.AsType[*httpapi.StatusError](err); ok {
		var status struct {
			Message string `json:"message"`
		}
		if refused.Type == "application/json" {
			// A refusal whose body cannot be read is told by its code alone.
			_ = json.Unmarshal(refused.Body, &status)
		}
		return nil, &StatusError{Code: refused.Code, Message: clip(status.Message), Verb: verb, Namespace: c.namespace, Name: name}
	}
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerBytesMax+1))
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	return decode(body, name)
}

// isStatus reports whether the API server has answered with a code.
func isStatus(err error, code int) bool {
	refused, ok := errors.AsType[*StatusError](err)
	return ok && refused.Code == code
}

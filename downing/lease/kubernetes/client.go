// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

// The requests to the API server: first where the server is and which files hold the
// credentials, then the three requests, in the end what a refusal says.

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/quorate/quorate/discovery/httpapi"
	"github.com/quorate/quorate/discovery/kubernetes/kubeapi"
)

// maxAnswerBytes is the longest answer; an API server stores no longer objects.
const maxAnswerBytes = 1 << 20

// client asks one API server about the leases of a namespace.
type client struct {
	api       *httpapi.Client
	namespace string
}

// newClient returns the client of a configuration. In a pod, account is the directory of its
// credentials.
func newClient(c Config, account string) (*client, error) {
	c, err := c.Located(account)
	if err != nil {
		return nil, err
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
		return nil, &StatusError{Code: refused.Code, Message: kubeapi.Message(refused), Verb: verb, Namespace: c.namespace, Name: name}
	}
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes+1))
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

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

// The requests to the API server. First where the server is and which files hold the
// credentials, in a pod and elsewhere; then one request, and what a refusal says.

import (
	"context"
	"errors"
	"io"
	"net/url"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery/httpapi"
	"github.com/quorate/quorate/discovery/kubernetes/kubeapi"
)

// client asks one API server. It is safe for concurrent use.
type client struct {
	api       *httpapi.Client
	tokenFile string // the file of the token that is sent, for errors; empty if none is sent
}

// newClient returns the client of a configuration, and the namespace. In a pod, account
// is the directory of its credentials.
func newClient(c Config, account string) (*client, string, error) {
	found, err := c.Located(account)
	if err != nil {
		return nil, "", err
	}
	return clientOf(found.Server, found.Config), found.Namespace, nil
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
		return nil, c.refusal(r, refused.Code, kubeapi.Message(refused))
	}
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

func (c *client) refusal(r request, code int, message string) *StatusError {
	return &StatusError{
		Code: code, Message: field.Clip(message), Verb: r.verb, Group: r.resource.group, Resource: r.resource.name,
		Namespace: r.namespace, Credentials: c.tokenFile,
	}
}

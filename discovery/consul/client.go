// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consul

// The one request to the agent: which registrations of a name are healthy, at once or when
// they have changed. First the query and its deadline, then what is accepted as an answer.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/discovery/httpapi"

	"github.com/quorate/quorate/config/field"
)

// maxAnswerBytes is the longest answer: 10,000 registrations with several checks each.
const maxAnswerBytes = 32 << 20

// client asks one agent. It is safe for concurrent use.
type client struct {
	config Config
	api    *httpapi.Client
}

// newClient returns a client with a valid configuration. The agent holds back the answer to a
// blocking query, so that only the deadline of each request bounds the time to its header.
func newClient(c Config) *client {
	return &client{config: c, api: httpapi.New(httpapi.Server{
		URL: c.Address, Key: "address", Malformed: ErrMalformed, Config: c.Config,
		Authorize: func(header http.Header, token string) { header.Set("X-Consul-Token", token) },
	})}
}

// health asks for the registrations of a service. With an index above 0 the agent holds its
// answer back until its own index differs, or [Config.Wait] is over. The index that is
// returned is above 0.
func (c *client) health(ctx context.Context, service string, index uint64) ([]entry, uint64, error) {
	limit := c.config.RequestTimeout
	query := url.Values{"tag": c.config.Tags}
	if c.config.Passing {
		query.Set("passing", "1")
	}
	if c.config.Datacenter != "" {
		query.Set("dc", c.config.Datacenter)
	}
	if index > 0 {
		query.Set("index", strconv.FormatUint(index, 10))
		query.Set("wait", strconv.FormatInt(c.config.Wait.Milliseconds(), 10)+"ms")
		// Consul adds up to a sixteenth at random, so that clients do not all ask at once.
		limit += c.config.Wait + c.config.Wait/16
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	answer, err := c.api.Get(ctx, "/v1/health/service/"+url.PathEscape(service)+"?"+query.Encode())
	if err != nil {
		return nil, 0, c.refusal(service, err)
	}
	defer func() { _ = answer.Body.Close() }() // It was only read.
	if answer.Header.Get("X-Consul-Results-Filtered-By-ACLs") == "true" {
		// A token that may read nothing gets an empty list, which would say that there are no nodes.
		return nil, 0, &StatusError{Code: answer.StatusCode, Service: service, Credentials: c.config.TokenFile}
	}
	next, err := strconv.ParseUint(answer.Header.Get("X-Consul-Index"), 10, 64)
	if err != nil || next == 0 {
		return nil, 0, fmt.Errorf("%w: the index is %q", ErrMalformed, field.Clip(answer.Header.Get("X-Consul-Index")))
	}
	// There is news: the rest of it is not waited for as long as news itself.
	late := time.AfterFunc(c.config.RequestTimeout, func() { giveUp(context.DeadlineExceeded) })
	defer late.Stop()
	entries, err := decode(answer.Body)
	if err != nil && ctx.Err() != nil {
		// Below HTTP/2 a body that is cut off by the deadline only says that it was closed.
		return nil, 0, context.Cause(ctx)
	}
	return entries, next, err
}

// refusal returns the error of a request for a service as a [StatusError] if the agent
// refused it.
func (c *client) refusal(service string, err error) error {
	refused, ok := errors.AsType[*httpapi.StatusError](err)
	if !ok {
		return err
	}
	return &StatusError{
		Code: refused.Code, Message: field.Clip(strings.TrimSpace(string(refused.Body))),
		Service: service, Credentials: c.config.TokenFile,
	}
}

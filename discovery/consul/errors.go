// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consul

import (
	"errors"
	"fmt"
	"net/http"
)

// ErrMalformed is wrapped by errors about an answer that no Consul agent would give:
// another content type, a body that is broken or has no end, a redirect.
var ErrMalformed = errors.New("this is no answer of a Consul agent")

// StatusError says that the agent refused a question, or a part of its answer.
type StatusError struct {
	// Code is the HTTP status, such as 403. It is 200 if the agent answered, and left
	// out what the token may not read.
	Code int
	// Message is what the agent says, cut when it is long; it may be empty.
	Message string
	// Service is the name whose registrations were asked for.
	Service string
	// Credentials names the file of the token that was sent; empty if none was.
	Credentials string
}

// Error says in one line what was refused, and what to do where that is known.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("service %q: the agent answers %d %s", e.Service, e.Code, http.StatusText(e.Code))
	if e.Code == http.StatusOK {
		text = fmt.Sprintf("service %q: the agent leaves out what the token may not read", e.Service)
	}
	if e.Message != "" {
		text += fmt.Sprintf(" %q", e.Message)
	}
	if e.Code == http.StatusForbidden || e.Code == http.StatusOK {
		text += fmt.Sprintf(": give the token the policy 'service %q { policy = \"read\" } node_prefix \"\" { policy = \"read\" }'", e.Service)
		if e.Credentials == "" {
			text += ", and set token-file, for none was sent"
		}
	}
	return text
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/quorate/quorate/discovery/kubernetes/kubeapi"
)

// ErrNotInCluster is wrapped by the error of [New] when no server is configured and
// the program does not run in a pod, or in one without a service account.
var ErrNotInCluster = kubeapi.ErrNotInCluster

// ErrMalformed is wrapped by errors about an answer that no API server would give:
// another content type, a body that is broken or has no end, a redirect.
var ErrMalformed = errors.New("this is no answer of a Kubernetes API server")

// StatusError says that the API server refused a request.
type StatusError struct {
	// Code is the HTTP status, such as 403.
	Code int
	// Message is what the server says, cut when it is long; it may be empty.
	Message string
	// Verb is the verb of the request: "list" or "watch".
	Verb string
	// Group, Resource and Namespace name the objects of the request, the first two as a role
	// does.
	Group, Resource, Namespace string
	// Credentials names the file of the token that was sent; empty if none was.
	Credentials string
}

// Error says in one line what was refused, and what to do where that is known.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s %s in namespace %q: the server answers %d %s", e.Verb, e.Resource, e.Namespace,
		e.Code, http.StatusText(e.Code))
	if e.Message != "" {
		text += fmt.Sprintf(" %q", e.Message)
	}
	if advice := e.advice(); advice != "" {
		text += ": " + advice
	}
	return text
}

func (e *StatusError) advice() string {
	switch e.Code {
	case http.StatusForbidden:
		return fmt.Sprintf("the role of the service account lacks the verb %q on %q, give it the rule "+
			"{apiGroups: [%q], resources: [%q], verbs: [list, watch]} by a Role and a RoleBinding in namespace %q",
			e.Verb, e.Resource, e.Group, e.Resource, e.Namespace)
	case http.StatusUnauthorized:
		if e.Credentials == "" {
			return "no token was sent, set token-file"
		}
		return fmt.Sprintf("the token in %s has expired, or is of another cluster", e.Credentials)
	case http.StatusNotFound:
		return "the server does not have this resource, is the address that of the API server?"
	case http.StatusBadRequest:
		return "is the selector right?"
	default:
		return ""
	}
}

// gone reports whether an error says that the server has forgotten a version, or the next page
// of a list.
func gone(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == http.StatusGone
}

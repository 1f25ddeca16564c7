// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/quorate/quorate/discovery/kubernetes/kubeapi"
)

var (
	// ErrUndecided is wrapped by the error of Take while another has the lease, and whether that
	// holder lives has not been seen yet.
	ErrUndecided = errors.New("whether the holder lives has not been seen yet")
	// ErrNotInCluster is wrapped by the error of [New] outside of a pod, if no server is set.
	ErrNotInCluster = kubeapi.ErrNotInCluster
	// ErrMalformed is wrapped by the error of an answer that no API server would give, and of
	// a Lease that is not one of this store.
	ErrMalformed = errors.New("malformed answer")

	errContended = errors.New("others change the lease all the time")
)

// StatusError is an answer by which the API server refuses a request.
type StatusError struct {
	Code      int    // the HTTP status
	Message   string // of the server
	Verb      string // what the request needed: get, create or update
	Namespace string
	Name      string // of the lease
}

// Error implements error.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("the server answers %d %s %q to %s the lease %q in namespace %q",
		e.Code, http.StatusText(e.Code), e.Message, e.Verb, e.Name, e.Namespace)
	if e.Code == http.StatusForbidden {
		text += ": give its service account a role with the verbs get, create and update for leases of coordination.k8s.io"
	}
	return text
}

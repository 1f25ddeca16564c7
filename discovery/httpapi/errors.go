// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/http"
)

// StatusError is the error of a request that the server answered with a status other than
// 200. A method makes an error of its own from it, which says what was asked and what to do.
type StatusError struct {
	// Code is the HTTP status, such as 403.
	Code int
	// Type is the media type of the body, such as "application/json"; empty if the answer
	// does not say one.
	Type string
	// Body is what the server says about the refusal, the first 64 KiB of it.
	Body []byte
}

// Error names the status in one line, and leaves out the body, whose form only the method
// knows.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the server answers %d %s", e.Code, http.StatusText(e.Code))
}

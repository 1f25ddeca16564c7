// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"net/http"
	"net/http/httptest"
)

// s3With is a double of S3 with one object.
func s3With(path, text string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text)) // The client sees what is missing.
	}))
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/quorate/quorate/discovery/httpapi"
)

// The nodes that a registry lists at a path. The registry is one that knows two nodes and
// refuses everything else.
func ExampleClient_Get() {
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/nodes" {
			http.Error(w, "there is nothing here", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `["10.0.0.1:7946", "10.0.0.2:7946"]`)
	}))
	defer registry.Close()
	client := httpapi.New(httpapi.Server{
		URL: registry.URL, Key: "address", Malformed: errors.New("this is no answer of the registry"), Config: httpapi.Default(),
	})
	defer func() { _ = client.Close() }()

	answer, err := client.Get(context.Background(), "/v1/nodes")
	if err != nil {
		panic(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var nodes []string
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&nodes); err != nil {
		panic(err)
	}
	fmt.Println(nodes)

	_, err = client.Get(context.Background(), "/v2/nodes")
	fmt.Println(err)
	// Output:
	// [10.0.0.1:7946 10.0.0.2:7946]
	// the server answers 404 Not Found
}

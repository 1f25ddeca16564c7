// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consul_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/consul"
)

// The nodes that are registered under the name "bank". consul.Default() alone asks the agent on
// this machine; here the agent is a server that knows a single registration.
func ExampleNew() {
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("index") {
			<-r.Context().Done() // No news.
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Consul-Index", "7")
		fmt.Fprint(w, `[{"Node": {"Address": "10.0.0.1"}, "Service": {"Port": 7946, "Meta": {"port-management": "8558"}}}]`)
	}))
	defer agent.Close()
	config := consul.Default()
	config.Address = agent.URL

	registered, err := consul.New(config)
	if err != nil {
		panic(err)
	}
	defer func() { _ = registered.Close() }()
	found, err := registered.Lookup(context.Background(), discovery.Query{Service: "bank", Port: "management"})
	if err != nil {
		panic(err)
	}
	fmt.Println(found.List)
	fmt.Println(found.Reason)
	// Output:
	// [10.0.0.1:8558]
	// consul: 1 registrations of "bank" whose checks pass
}

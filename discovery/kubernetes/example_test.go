// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/kubernetes"
)

// The pods of the service "bank". In a pod, kubernetes.Default() alone would do; here
// the server is one that knows a single pod.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `{"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": [{
			"metadata": {"name": "bank-0", "uid": "1"},
			"spec": {"containers": [{"ports": [{"name": "management", "containerPort": 8558}]}]},
			"status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]}
		}]}`)
	}))
	defer server.Close()
	config := kubernetes.Default()
	config.Server, config.Namespace = server.URL, "default"

	pods, err := kubernetes.New(config)
	if err != nil {
		panic(err)
	}
	defer func() { _ = pods.Close() }()
	found, err := pods.Lookup(context.Background(), discovery.Query{Service: "bank", Port: "management"})
	if err != nil {
		panic(err)
	}
	fmt.Println(found.List)
	fmt.Println(found.Reason)
	// Output:
	// [10.0.0.1:8558]
	// kubernetes: pods with "app.kubernetes.io/name=bank" in namespace "default": 1 of 1
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/quorate/quorate/management"
)

// A program serves a route of its own. The routes of a node come from [management.Health],
// [management.Members], [management.Decisions] and [management.Explanations].
func ExampleServe() {
	cfg := management.Default()
	cfg.Address = "127.0.0.1:0" // The server takes any free port; a real node has a fixed one.
	double := management.Route{
		Path: "/v1/double", Query: []string{"of"},
		Answer: func(_ context.Context, r management.Request) (any, error) {
			n, err := r.QueryInt("of", 0, 1000, 0)
			return map[string]int{"double": 2 * n}, err
		},
	}
	server, err := management.Serve(context.Background(), cfg, []management.Route{double}, management.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Close() }()
	for _, query := range []string{"of=21", "of=many"} {
		response, err := http.Get("http://" + server.Address() + "/v1/double?" + query)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, err := io.ReadAll(response.Body)
		fmt.Print(response.StatusCode, " ", string(body))
		if err != nil || response.Body.Close() != nil {
			return
		}
	}
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// 200 {"double":42}
	// 400 {"error":"of: \"many\" is not a number from 0 to 1000"}
}

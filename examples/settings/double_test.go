// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
)

// The doubles of the stores: each answers the one question of koanf's provider.

// etcdServer is a double of etcd that lists keys.
type etcdServer struct {
	etcdserverpb.UnimplementedKVServer

	keys    map[string]string
	address string
	server  *grpc.Server
	done    chan struct{}
}

func etcdWith(keys map[string]string) *etcdServer {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	e := &etcdServer{keys: keys, address: listener.Addr().String(), server: grpc.NewServer(), done: make(chan struct{})}
	etcdserverpb.RegisterKVServer(e.server, e)
	// Owned by the double: stop ends it, and waits.
	go func() {
		defer close(e.done)
		_ = e.server.Serve(listener) // It ends by stop alone.
	}()
	return e
}

func (e *etcdServer) stop() {
	e.server.Stop()
	<-e.done
}

// Range lists the keys with a prefix.
func (e *etcdServer) Range(_ context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	res := &etcdserverpb.RangeResponse{Header: new(etcdserverpb.ResponseHeader)}
	for _, key := range slices.SortedFunc(maps.Keys(e.keys), cmp.Compare) {
		if strings.HasPrefix(key, string(r.GetKey())) {
			res.Kvs = append(res.Kvs, &mvccpb.KeyValue{Key: []byte(key), Value: []byte(e.keys[key])})
		}
	}
	return res, nil
}

// consulWith is a double of Consul with one key.
func consulWith(key, value string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/kv/"+key {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode([]map[string]any{{"Key": key, "Value": []byte(value)}}) // As base64, as Consul does.
	}))
}

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

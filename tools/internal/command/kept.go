// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"net/http"
	"sync"
)

// keptConnection keeps the client of a command that asks a node again and again, and with it the connection. After
// a request that failed the next one begins with a new client, which reads certificates anew.
type keptConnection struct {
	mu     sync.Mutex // Guards all below; held for a moment, and while the files of a certificate are read.
	client *http.Client
	ended  bool
}

// errEnded says that nothing is asked any more.
var errEnded = errors.New("the command has ended")

// keep has the connection to the node kept until end is called.
func (r *RemoteFlags) keep() (end func()) {
	r.kept = &keptConnection{}
	return r.kept.end
}

// borrow returns a client for one request, and the function to be called when its answer was
// read, or it failed.
func (r *RemoteFlags) borrow() (client *http.Client, done func(failed bool), err error) {
	if r.kept != nil {
		return r.kept.borrow(r.client)
	}
	client, err = r.client()
	return client, func(bool) { client.CloseIdleConnections() }, err
}

func (k *keptConnection) borrow(open func() (*http.Client, error)) (client *http.Client, done func(failed bool), err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return nil, nil, errEnded // Else what still asks would connect again.
	}
	if client = k.client; client == nil {
		if client, err = open(); err != nil {
			return nil, nil, err
		}
		k.client = client
	}
	return client, func(failed bool) { k.settle(client, failed) }, nil
}

// settle drops a client that failed, and closes one that came back after the end.
func (k *keptConnection) settle(client *http.Client, failed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if failed && k.client == client {
		k.client = nil
	}
	if failed || k.ended {
		client.CloseIdleConnections()
	}
}

// end closes the connection, or has the request that is under way close it.
func (k *keptConnection) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	if k.client != nil {
		k.client.CloseIdleConnections()
	}
}

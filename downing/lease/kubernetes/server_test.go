// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

// An HTTP server with the part of the Kubernetes API that the store uses: it demands the token,
// enforces resource versions, and answers 404 and 409 as an API server does. A test that needs
// another answer gives the server a hook, which says whether it has answered.

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing/lease/kubernetes"
)

// bank is the lease of the tests that change one behind the back of the store.
const bank = "bank"

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/prod/leases"

type anyMap = map[string]any

type apiServer struct {
	tls *httptest.Server

	mu      sync.Mutex // guards what follows
	version int
	leases  map[string]anyMap
	hook    func(w http.ResponseWriter, r *http.Request) bool
}

func newServer(t testing.TB) *apiServer {
	t.Helper()
	s := &apiServer{version: 100, leases: make(map[string]anyMap)}
	s.tls = httptest.NewTLSServer(s)
	t.Cleanup(s.tls.Close)
	return s
}

// open returns a store with the credentials of the server.
func (s *apiServer) open(t testing.TB, edits ...func(*kubernetes.Config)) *kubernetes.Store {
	t.Helper()
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.tls.Certificate().Raw})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.crt"), ca, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte("secret\n"), 0o600))
	config := kubernetes.Default()
	config.Server, config.Namespace = s.tls.URL, "prod"
	config.CAFile, config.TokenFile = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	for _, edit := range edits {
		edit(&config)
	}
	store, err := kubernetes.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// answers gives the server a hook, or takes it away.
func (s *apiServer) answers(hook func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

// put changes a lease as another program would.
func (s *apiServer) put(change func(lease, spec anyMap)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease, ok := s.leases[bank]
	if !ok {
		lease = anyMap{"kind": "Lease", "metadata": anyMap{"name": bank}, "spec": anyMap{}}
	}
	change(lease, lease["spec"].(anyMap))
	s.store(bank, lease)
}

func (s *apiServer) store(name string, lease anyMap) {
	s.version++
	lease["metadata"].(anyMap)["resourceVersion"] = strconv.Itoa(s.version)
	s.leases[name] = lease
}

// spec returns what the server holds of a lease.
func (s *apiServer) spec() anyMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[bank]["spec"].(anyMap)
}

func (s *apiServer) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.leases, bank)
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	hook := s.hook
	s.mu.Unlock()
	if hook != nil && hook(w, r) {
		return
	}
	if r.Header.Get("Authorization") != "Bearer secret" {
		refuse(w, http.StatusUnauthorized, "Unauthorized")
		return
	}
	name, named := strings.CutPrefix(r.URL.Path, leasesPath+"/")
	var sent anyMap
	body, err := io.ReadAll(r.Body)
	if err == nil && r.Method != http.MethodGet {
		err = json.Unmarshal(body, &sent)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Method == http.MethodGet && named:
		s.get(w, name)
	case r.Method == http.MethodPut && named:
		s.replace(w, name, sent)
	case r.Method == http.MethodPost && r.URL.Path == leasesPath:
		s.create(w, sent)
	default:
		refuse(w, http.StatusMethodNotAllowed, r.Method+" "+r.URL.Path)
	}
}

func (s *apiServer) get(w http.ResponseWriter, name string) {
	if _, ok := s.leases[name]; !ok {
		refuse(w, http.StatusNotFound, "leases "+name+" not found")
		return
	}
	answer(w, http.StatusOK, s.leases[name])
}

func (s *apiServer) replace(w http.ResponseWriter, name string, sent anyMap) {
	old, ok := s.leases[name]
	switch {
	case !ok:
		s.get(w, name)
	case old["metadata"].(anyMap)["resourceVersion"] != sent["metadata"].(anyMap)["resourceVersion"]:
		refuse(w, http.StatusConflict, "the object has been modified")
	default:
		s.store(name, sent)
		answer(w, http.StatusOK, sent)
	}
}

func (s *apiServer) create(w http.ResponseWriter, sent anyMap) {
	name := sent["metadata"].(anyMap)["name"].(string)
	if _, ok := s.leases[name]; ok {
		refuse(w, http.StatusConflict, "leases "+name+" already exists")
		return
	}
	s.store(name, sent)
	answer(w, http.StatusCreated, sent)
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // A client that has gone hears nothing.
}

func refuse(w http.ResponseWriter, code int, message string) {
	answer(w, code, anyMap{"kind": "Status", "code": code, "message": message})
}

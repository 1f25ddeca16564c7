// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

// The store against the server of server_test.go: first the conformance suite, then who gets a
// lease that others have written, refusals, servers that are slow or silent, and credentials.

import (
	"context"
	"errors"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/kubernetes"
	"github.com/quorate/quorate/downing/lease/leasetest"
	"github.com/quorate/quorate/internal/patience"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func claim() lease.Claim {
	return lease.Claim{Name: "bank", Owner: "a", TTL: 3 * time.Second}
}

func TestTheStoreKeepsTheContract(t *testing.T) {
	leasetest.Test(t, leasetest.Place{
		TTL: 3 * time.Second,
		New: func(t testing.TB) leasetest.Server {
			s := newServer(t)
			return leasetest.Server{
				Open: func(t testing.TB) lease.Store { return s.open(t) },
				Cut: func(cut bool) {
					s.answers(func(_ http.ResponseWriter, r *http.Request) bool {
						if cut {
							<-r.Context().Done()
						}
						return cut
					})
				},
			}
		},
		Run: leasetest.Parallel,
	})
}

// The times in the lease are hours off in either direction; what counts is whether it changes.
func TestClocksThatDifferByHoursMatterNot(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-3 * time.Hour, 3 * time.Hour} {
		s := newServer(t)
		store := s.open(t)
		foreign := func(_, spec anyMap) {
			spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"] = "z", 20, 6
			spec["renewTime"] = time.Now().Add(off).UTC().Format(time.RFC3339Nano)
		}
		s.put(foreign)
		_, err := store.Take(t.Context(), claim())
		require.ErrorIs(t, err, kubernetes.ErrUndecided)
		require.ErrorContains(t, err, `"z", which has the lease for 21s more unless it renews it`)
		s.put(foreign)
		a, err := store.Take(t.Context(), claim())
		require.NoError(t, err)
		require.Equal(t, lease.Answer{Owner: "z"}, a, "it lives")
	}
}

// A lease that was given back is taken at once, and what others wrote into it stays.
func TestWhatOthersWroteStays(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(func(lease, spec anyMap) {
		lease["metadata"].(anyMap)["labels"] = anyMap{"team": "bank"}
		spec["strategy"], spec["leaseTransitions"] = "OldestEmulationVersion", 41
	})
	store := s.open(t)
	a, err := store.Take(t.Context(), claim())
	require.NoError(t, err)
	require.EqualValues(t, 42, a.Token)
	require.NoError(t, store.Give(t.Context(), claim()))
	spec := s.spec()
	require.Equal(t, "OldestEmulationVersion", spec["strategy"])
	require.Empty(t, spec["holderIdentity"])
	require.Equal(t, anyMap{"team": "bank"}, s.leases["bank"]["metadata"].(anyMap)["labels"])
}

// Between the reading of a lease and its change somebody else takes it: the server refuses the
// change, and the answer is that of the lease as it is then.
func TestAGrantIsToldOnlyAfterTheServerHasConfirmedIt(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(s *apiServer){
		"created": func(s *apiServer) {
			s.put(func(_, spec anyMap) { spec["holderIdentity"], spec["leaseDurationSeconds"] = "z", 20 })
		},
		"changed all the time": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.answers(func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.Method == http.MethodGet:
					return false
				case meanwhile != nil:
					meanwhile(s)
					return false
				}
				refuse(w, http.StatusConflict, "the object has been modified")
				return true
			})
			_, err := s.open(t).Take(t.Context(), claim())
			if meanwhile == nil {
				require.ErrorContains(t, err, "others change the lease all the time")
				return
			}
			require.ErrorIs(t, err, kubernetes.ErrUndecided)
		})
	}
}

// A change of which the answer is lost is found at the next call: one holding, one token.
func TestAnAnswerThatIsLostIsFoundAgain(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		s.put(func(_, spec anyMap) {
			spec["holderIdentity"], spec["leaseTransitions"], spec["leaseDurationSeconds"] = "a", 1, 3
		})
		refuse(w, http.StatusInternalServerError, "etcdserver: request timed out")
		return true
	})
	store := s.open(t)
	_, err := store.Take(t.Context(), claim())
	require.ErrorContains(t, err, `500 Internal Server Error "etcdserver: request timed out" to create the lease "bank" in namespace "prod"`)
	a, err := store.Take(t.Context(), claim())
	require.NoError(t, err)
	require.EqualValues(t, 1, a.Token)
	s.answers(nil)
	s.remove()
	a, err = store.Take(t.Context(), claim())
	require.NoError(t, err)
	require.EqualValues(t, 1, a.Token, "a lease that was deleted begins anew")
}

func TestRefusalsAreErrorsAndSayWhatToDo(t *testing.T) {
	t.Parallel()
	for code, text := range map[int]string{
		http.StatusGone: "410 Gone", http.StatusTooManyRequests: "429 Too Many Requests", http.StatusInternalServerError: "500",
		http.StatusForbidden: "give its service account a role with the verbs get, create and update", http.StatusUnauthorized: "401",
	} {
		s := newServer(t)
		store := s.open(t)
		for _, method := range []string{http.MethodGet, http.MethodPut} {
			s.answers(nil)
			_, err := store.Take(t.Context(), claim())
			require.NoError(t, err)
			s.answers(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == method {
					refuse(w, code, "no")
				}
				return r.Method == method
			})
			_, err = store.Take(t.Context(), claim())
			require.ErrorContains(t, err, text)
			refused, ok := errors.AsType[*kubernetes.StatusError](err)
			require.True(t, ok)
			require.Equal(t, code, refused.Code)
			require.ErrorContains(t, store.Give(t.Context(), claim()), text)
		}
	}
}

func TestASilentServerIsAnErrorWithinTheLimit(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	store := s.open(t, func(c *kubernetes.Config) { c.RequestTimeout = 200 * time.Millisecond })
	s.answers(func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	watch := patience.Start(t)
	_, err := store.Take(t.Context(), claim())
	require.Error(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded, "the time of the caller is not over")
	require.Less(t, watch.Elapsed(), 5*time.Second)
}

// What the server holds is no lease of this store, or what it has made of a change is another.
func TestAnswersThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(lease, spec anyMap){
		"another kind":       func(lease, _ anyMap) { lease["kind"] = "Pod" },
		"another name":       func(lease, _ anyMap) { lease["metadata"].(anyMap)["name"] = "shop" },
		"too long":           func(_, spec anyMap) { spec["leaseDurationSeconds"] = 1 << 40 },
		"negative":           func(_, spec anyMap) { spec["leaseTransitions"] = -1 },
		"holder is a number": func(_, spec anyMap) { spec["holderIdentity"] = 7 },
		"no higher token":    func(_, spec anyMap) { spec["leaseTransitions"] = math.MaxInt32 },
		"held without token": func(_, spec anyMap) { spec["holderIdentity"] = "a" },
	} {
		s := newServer(t)
		s.put(change)
		_, err := s.open(t).Take(t.Context(), claim())
		require.ErrorIs(t, err, kubernetes.ErrMalformed, name)
	}
	s := newServer(t)
	s.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			answer(w, http.StatusCreated, anyMap{"kind": "Lease", "metadata": anyMap{"name": "bank", "resourceVersion": "7"}, "spec": anyMap{"holderIdentity": "z"}})
		}
		return r.Method == http.MethodPost
	})
	_, err := s.open(t).Take(t.Context(), claim())
	require.ErrorIs(t, err, kubernetes.ErrMalformed)
	require.ErrorContains(t, err, `after a change the lease belongs to "z"`)
}

func TestCredentialsOfAPod(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := kubernetes.New(kubernetes.Default())
	require.ErrorIs(t, err, kubernetes.ErrNotInCluster)
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	dir := t.TempDir()
	_, err = kubernetes.NewIn(kubernetes.Default(), dir)
	require.ErrorIs(t, err, kubernetes.ErrNotInCluster)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "namespace"), []byte("a/b"), 0o600))
	_, err = kubernetes.NewIn(kubernetes.Default(), dir)
	require.ErrorContains(t, err, `"a/b" is no name of a namespace`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "namespace"), []byte("prod\n"), 0o600))
	store, err := kubernetes.NewIn(kubernetes.Default(), dir)
	require.NoError(t, err)
	_, err = store.Take(t.Context(), claim())
	require.ErrorContains(t, err, "certificates")
	_, err = store.Take(t.Context(), lease.Claim{Name: "../a"})
	require.ErrorContains(t, err, "is no name of a lease")
	require.NoError(t, store.Close())
}

func TestConfigRefusesEachFaultAtItsKey(t *testing.T) {
	require.NoError(t, kubernetes.Default().Validate())
	for key, edit := range map[string]func(*kubernetes.Config){
		"namespace: \"a/b\"":          func(c *kubernetes.Config) { c.Namespace = "a/b" },
		"namespace: it must be given": func(c *kubernetes.Config) { c.Server = "https://a" },
		"server: \"ftp":               func(c *kubernetes.Config) { c.Server, c.Namespace = "ftp://a", "prod" },
		"not on this machine":         func(c *kubernetes.Config) { c.Server, c.Namespace = "http://10.0.0.1", "prod" },
		"the token could be read":     func(c *kubernetes.Config) { c.Server, c.Namespace, c.TokenFile = "http://127.0.0.1", "prod", "t" },
		"request-timeout":             func(c *kubernetes.Config) { c.RequestTimeout = 0 },
	} {
		config := kubernetes.Default()
		edit(&config)
		_, err := kubernetes.New(config)
		require.ErrorContains(t, err, key)
	}
}

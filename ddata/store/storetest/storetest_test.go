// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/ddata/store/storetest"
)

// flawed is a store with one defect.
type flawed struct {
	store.Store

	defect string
}

func (f *flawed) Apply(ctx context.Context, batches []store.Batch) error {
	changed := append([]store.Batch{}, batches...)
	for i := range changed {
		b := &changed[i]
		switch f.defect {
		case "forgets a drop":
			b.Drop = nil
		case "forgets a meta":
			b.Meta = nil
		case "forgets a wipe":
			b.Wipe = false
		case "wipes after":
			if b.Wipe {
				b.Put = nil
			}
		case "mixes groups":
			b.Group = "g"
		case "loses a record":
			b.Put = b.Put[:max(0, len(b.Put)-1)]
		}
	}
	return f.Store.Apply(ctx, changed)
}

func (f *flawed) Load(ctx context.Context, group string, meta func([]byte) error, record func(store.Record) error) error {
	if f.defect == "ignores errors" {
		_ = f.Store.Load(ctx, group, meta, record)
		return nil
	}
	return f.Store.Load(ctx, group, meta, record)
}

func (f *flawed) Starts() uint64 {
	if f.defect == "counts no starts" {
		return 1
	}
	return f.Store.Starts()
}

func (f *flawed) NewID(ctx context.Context) error {
	if f.defect == "keeps its name" {
		return nil
	}
	return f.Store.NewID(ctx)
}

const defectVariable = "QUORATE_STORETEST_DEFECT"

// TestFlawedStore is the suite over the store with the defect that the environment names; it
// is run by TestTheSuiteFindsEachDefect in a process of its own, since it fails.
func TestFlawedStore(t *testing.T) {
	defect := os.Getenv(defectVariable)
	storetest.TestStore(t, func(testing.TB) storetest.Open {
		disk := store.NewMemory(rand.NewPCG(rand.Uint64(), 1))
		return func(cluster string) (store.Store, error) {
			if defect == "takes any cluster" {
				cluster = "one"
			}
			s, err := disk.Open(cluster)
			if err != nil {
				return nil, err
			}
			return &flawed{Store: s, defect: defect}, nil
		}
	})
}

func TestTheSuiteFindsEachDefect(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	for _, defect := range []string{
		"forgets a drop", "forgets a meta", "forgets a wipe", "wipes after", "mixes groups", "loses a record",
		"ignores errors", "counts no starts", "keeps its name", "takes any cluster",
	} {
		t.Run(defect, func(t *testing.T) {
			run := exec.CommandContext(t.Context(), program, "-test.run=^TestFlawedStore$")
			run.Env = append(os.Environ(), defectVariable+"="+defect)
			out, err := run.CombinedOutput()
			require.Error(t, err, "the suite has passed")
			require.Contains(t, string(out), "--- FAIL")
		})
	}
}

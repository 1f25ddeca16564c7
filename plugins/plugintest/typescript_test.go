// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build typescript && !windows

package plugintest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The endpoint of the trial names the first contact point that answers.
func TestTypeScriptExamplePasses(t *testing.T) {
	path := built(t, "typescript", "operator")
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			ContactPoints []struct {
				Address  string
				Answered bool
			}
		}
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&asked))
		named := ""
		for _, p := range asked.ContactPoints {
			if p.Answered && named == "" {
				named = p.Address
			}
		}
		assert.NoError(t, json.NewEncoder(w).Encode(map[string]string{"form": named, "reason": "it is the first"}))
	}))
	defer endpoint.Close()
	tried(t, path, "timeout-ms: 5000\nurl: "+endpoint.URL+"\n")
}

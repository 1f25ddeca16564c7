// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build typescript

package plugintest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/plugins"
)

// The endpoint names the first contact point that answers.
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
	Test(t, plugins.Config{Policy: plugins.JoinDecider, Path: path, Settings: map[string]any{"url": endpoint.URL}, StartTimeout: patience})
}

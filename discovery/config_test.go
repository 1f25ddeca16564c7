// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery"
)

func TestDefaultIsValid(t *testing.T) {
	require.NoError(t, discovery.Default().Validate())
}

func TestConfigReportsAllFaultsTogether(t *testing.T) {
	err := discovery.Config{}.Validate()
	require.ErrorContains(t, err, "methods: none given")
	require.ErrorContains(t, err, "lookup-timeout: 0s")
	err = discovery.Config{
		Methods:       []string{"static", "", "static"},
		Endpoints:     []string{"a:1", "b"},
		LookupTimeout: time.Hour,
	}.Validate()
	require.ErrorContains(t, err, "methods: entry 1 is empty")
	require.ErrorContains(t, err, `methods: "static" is given twice`)
	require.ErrorContains(t, err, "lookup-timeout: 1h0m0s")
	require.ErrorContains(t, err, "endpoints: endpoint 1: ")
	require.ErrorIs(t, err, discovery.ErrBadTarget)
	for _, fault := range field.Parts(err) {
		key, _ := field.Of(fault)
		require.NotEmpty(t, key, "%v is shown at its key", fault)
	}
	many := discovery.Config{Endpoints: make([]string, discovery.MaxTargets+1)}
	require.ErrorContains(t, many.Validate(), "are more than")
	_, err = discovery.New(discovery.Config{})
	require.Error(t, err)
}

func TestNewAsksTheMethodsInTheOrderOfTheConfiguration(t *testing.T) {
	config := discovery.Default()
	config.Methods = []string{"mine", "static"}
	config.Endpoints = []string{"listed:1"}
	mine, other := discovery.Target{Host: "mine"}, discovery.Target{Host: "other"}
	d, err := discovery.New(config, method("other", answer(other)), method("mine", answer(mine)))
	require.NoError(t, err)
	found, err := d.Lookup(t.Context(), discovery.Query{})
	require.NoError(t, err)
	require.Equal(t, []discovery.Target{mine}, found.List)

	d, err = discovery.New(config, method("mine", empty))
	require.NoError(t, err)
	found, err = d.Lookup(t.Context(), discovery.Query{})
	require.NoError(t, err)
	require.Equal(t, []discovery.Target{{Host: "listed", Port: 1}}, found.List)
}

func TestNewRefusesMethodsThatNobodyProvidesOrTwoDo(t *testing.T) {
	config := discovery.Default()
	config.Methods = []string{"dsn", "static"}
	_, err := discovery.New(config, method("dns", empty))
	require.ErrorIs(t, err, discovery.ErrUnknownMethod)
	require.ErrorContains(t, err, `"dsn", known are static, dns`)
	_, err = discovery.New(discovery.Default(), method("static", empty))
	require.ErrorContains(t, err, `"static" is given twice`)
}

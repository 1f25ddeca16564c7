// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"fmt"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/kubernetes"
)

func Example() {
	settings := kubernetes.Default() // In a pod that is all; elsewhere the server is named.
	settings.Server, settings.Namespace = "https://10.0.0.1:6443", "prod"
	leases, err := kubernetes.New(settings)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = leases.Close() }()
	keeper, err := lease.NewKeeper(leases, lease.Default(), "bank", "10.1.0.7:7946")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(keeper.State().Phase)
	fmt.Println(keeper.Close())
	// Output:
	// idle
	// <nil>
}

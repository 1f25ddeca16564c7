// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"fmt"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/etcd"
)

func Example() {
	settings := etcd.Default()
	settings.Endpoints = []string{"https://10.0.0.1:2379", "https://10.0.0.2:2379"}
	leases, err := etcd.New(settings)
	if err != nil {
		fmt.Println(err)
		return
	}
	keeper, err := lease.NewKeeper(leases, lease.Default(), "bank", "10.1.0.7:7946")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(keeper.State().Phase)
	fmt.Println(keeper.Close(), leases.Close())
	// Output:
	// idle
	// <nil> <nil>
}

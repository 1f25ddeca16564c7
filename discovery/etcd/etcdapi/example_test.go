// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcdapi_test

import (
	"fmt"

	"github.com/quorate/quorate/discovery/etcd/etcdapi"
)

// A password is not sent where others can read it on the way.
func ExampleConfig_Validate() {
	c := etcdapi.Default()
	c.Endpoints = []string{"http://10.0.0.1:2379"}
	c.Username, c.PasswordFile = "bank", "password"
	fmt.Println(c.Validate())
	// Output: endpoints: "http://10.0.0.1:2379" is not encrypted, the password could be read on the way: write https
}

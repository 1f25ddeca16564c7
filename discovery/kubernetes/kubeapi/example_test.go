// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi_test

import (
	"fmt"

	"github.com/quorate/quorate/discovery/kubernetes/kubeapi"
)

// Outside of a pod the operator says where the server is.
func ExampleConfig_Located() {
	c := kubeapi.Default()
	c.Server, c.Namespace = "https://10.0.0.1:6443", "bank"
	if err := c.Validate(); err != nil {
		fmt.Println(err)
	}
	located, err := c.Located(kubeapi.ServiceAccount)
	fmt.Println(located.Server, located.Namespace, err)
	// Output: https://10.0.0.1:6443 bank <nil>
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import "github.com/quorate/quorate/discovery/kubernetes/kubeapi"

// Config is what an operator sets: the namespace of the leases, where the API server is, the files
// of the token and of the certificates, and the time limit of a request. The limit of a keeper
// counts as well. The zero value is not valid; start from [Default].
type Config = kubeapi.Config

// Default returns the settings for a pod: the namespace and the rights of its service account.
func Default() Config { return kubeapi.Default() }

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/etcd/etcdapi"
)

var (
	// ErrForbidden is wrapped by the error of a lookup or a [Registration] if etcd
	// refuses the user, or the request of the user.
	ErrForbidden = etcdapi.ErrForbidden

	errTooMany = fmt.Errorf("more than %d nodes", discovery.MaxTargets)
	errLost    = errors.New("the lease was lost")
)

// explain says in one line what went wrong with a request for keys below a prefix, and
// what to do where that is known.
func (d *Discovery) explain(outer context.Context, err error, what, prefix string) error {
	return d.config.Explain(outer, err, fmt.Sprintf("%s keys below %q", what, prefix), "readwrite --prefix=true "+prefix)
}

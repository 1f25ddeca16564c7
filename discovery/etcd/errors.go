// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/discovery"
)

var (
	// ErrForbidden is wrapped by the error of a lookup or a [Registration] if etcd
	// refuses the user, or the request of the user.
	ErrForbidden = errors.New("etcd refuses")

	errTooMany = fmt.Errorf("more than %d nodes", discovery.TargetsMax)
	errLost    = errors.New("the lease was lost")
)

// explain says in one line what went wrong with a request for keys below a prefix, and
// what to do where that is known.
func (d *Discovery) explain(outer context.Context, err error, what, prefix string) error {
	switch {
	case err == nil:
		return nil
	case outer.Err() != nil:
		return outer.Err()
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fmt.Errorf("%w: the user %q may not %s keys below %q: etcdctl role grant-permission ROLE readwrite --prefix=true %s",
			ErrForbidden, clip(d.config.Username), what, prefix, prefix)
	case errors.Is(err, rpctypes.ErrUserEmpty):
		return fmt.Errorf("%w: it wants to know a user: set username and password-file", ErrForbidden)
	case errors.Is(err, rpctypes.ErrAuthFailed):
		return fmt.Errorf("%w: the user %q or the password in %s is wrong", ErrForbidden, clip(d.config.Username), d.config.PasswordFile)
	case errors.Is(err, context.DeadlineExceeded):
		// Not wrapped: it must not look like the deadline of the lookup.
		return fmt.Errorf("no answer from %s within %v: is etcd there, has it a leader, are the scheme and the certificates right?",
			clip(strings.Join(d.config.Endpoints, ", ")), d.config.RequestTimeout)
	default:
		return fmt.Errorf("%s keys below %q: %w", what, prefix, err)
	}
}

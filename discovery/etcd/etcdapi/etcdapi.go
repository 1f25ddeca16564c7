// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcdapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery/httpapi"
)

// The settings and their check come first, then the connection that is made by them, and at last
// what a failure says.

// ErrForbidden is wrapped by an error if etcd refuses the user, or the request of the user.
var ErrForbidden = errors.New("etcd refuses")

const (
	maxEndpoints = 16
	// silence is how long a connection is silent before the other side is asked whether it
	// is still there.
	silence = 10 * time.Second
)

// Config is what an operator sets about the way to etcd. The zero value is not valid; start from
// [Default] and give the endpoints. The settings of whoever keeps something in etcd contain it,
// squashed into their own section.
type Config struct {
	// Endpoints are the URLs of the members of etcd, such as "https://10.0.0.1:2379",
	// at least one and at most 16.
	Endpoints []string `koanf:"endpoints"`

	// Username is the user of etcd. Empty: none, for an etcd without users or with
	// users known by certificates.
	Username string `koanf:"username"`

	// PasswordFile names the file of the user's password, which is read anew for each
	// connection.
	PasswordFile string `koanf:"password-file"`

	// CAFile names the file of the certificates by which etcd is known, in PEM form, which
	// is read anew for each connection. Empty: the certificates of the system.
	CAFile string `koanf:"ca-file"`

	// CertFile and KeyFile name the files of the certificate and the key of the node, in PEM
	// form, which are read anew for each connection. Both must be given, or neither.
	CertFile string `koanf:"cert-file"`
	KeyFile  string `koanf:"key-file"`

	// RequestTimeout is how long etcd may take for an answer, from 100 milliseconds to a
	// minute.
	RequestTimeout time.Duration `koanf:"request-timeout" range:"100ms..1m"`
}

// Default returns the settings without endpoints and files: 3 seconds for an answer.
func Default() Config { return Config{RequestTimeout: 3 * time.Second} }

// Paths returns pointers to the names of files, for a caller that makes these relative to a
// directory.
func (c *Config) Paths() []*string {
	return []*string{&c.PasswordFile, &c.CAFile, &c.CertFile, &c.KeyFile}
}

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(len(c.Endpoints) == 0 || len(c.Endpoints) > maxEndpoints, "endpoints",
		"%d are not in the range from 1 to %d", len(c.Endpoints), maxEndpoints)
	for _, endpoint := range c.Endpoints {
		faults.Add(c.checkEndpoint(endpoint))
	}
	faults.Refuse((c.Username == "") != (c.PasswordFile == ""), "password-file", "username and password-file belong together: give both or neither")
	faults.Refuse((c.CertFile == "") != (c.KeyFile == ""), "key-file", "cert-file and key-file belong together: give both or neither")
	faults.Add(field.Ranges(c))
	return faults.Err()
}

// checkEndpoint refuses what is no URL of a member of etcd, and a URL to which a password
// would go where others can read it on the way.
func (c Config) checkEndpoint(endpoint string) error {
	u, err := httpapi.ParseURL("endpoints", endpoint)
	switch {
	case err != nil:
		return err
	case u.Path != "":
		return field.Errorf("endpoints", "%q is not of the form https://host:port", field.Clip(endpoint))
	case u.Scheme == "http" && c.PasswordFile != "" && !httpapi.IsLocal(u):
		return field.Errorf("endpoints", "%q is not encrypted, the password could be read on the way: write https", field.Clip(endpoint))
	case u.Scheme == "http" && c.CAFile+c.CertFile != "":
		return field.Errorf("endpoints", "%q is not encrypted, and certificates are given by ca-file or cert-file: write https", field.Clip(endpoint))
	}
	return nil
}

// Connect returns a client with the password and the certificates that the files hold now,
// which takes answers of up to answerBytes. It waits only if there is a user, whose password etcd
// checks; ctx ends the wait, and later the requests of the client.
func (c Config) Connect(ctx context.Context, answerBytes int) (*clientv3.Client, error) {
	settings := clientv3.Config{
		Context:              ctx,
		Endpoints:            c.Endpoints,
		DialTimeout:          c.RequestTimeout,
		DialKeepAliveTime:    silence,
		DialKeepAliveTimeout: silence,
		MaxCallRecvMsgSize:   answerBytes,
		Username:             c.Username,
		Logger:               zap.NewNop(), // Failures are told by errors.
	}
	if c.PasswordFile != "" {
		password, err := httpapi.ReadFile(c.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("the password: %w", err)
		}
		settings.Password = strings.TrimSpace(string(password))
	}
	if slices.ContainsFunc(c.Endpoints, func(e string) bool { return strings.HasPrefix(e, "https:") }) {
		secured, err := c.secure()
		if err != nil {
			return nil, fmt.Errorf("the certificates: %w", err)
		}
		settings.TLS = secured
	}
	return clientv3.New(settings)
}

// secure reads the certificates.
func (c Config) secure() (*tls.Config, error) {
	roots, err := httpapi.ReadRoots(c.CAFile)
	if err != nil {
		return nil, err
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	if c.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, err
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}

// Explain says in one line what went wrong with a request, and what to do where that is known.
// The context is the one of the caller, request what was asked for, such as "get the key /a".
// Grant is the permission, as etcdctl takes it, that the request needs.
func (c Config) Explain(outer context.Context, err error, request, grant string) error {
	switch {
	case err == nil:
		return nil
	case outer.Err() != nil:
		return outer.Err()
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fmt.Errorf("%w: the user %q may not %s: etcdctl role grant-permission ROLE %s",
			ErrForbidden, field.Clip(c.Username), request, grant)
	case errors.Is(err, rpctypes.ErrUserEmpty):
		return fmt.Errorf("%w: it wants to know a user: set username and password-file", ErrForbidden)
	case errors.Is(err, rpctypes.ErrAuthFailed):
		return fmt.Errorf("%w: the user %q or the password in %s is wrong", ErrForbidden, field.Clip(c.Username), c.PasswordFile)
	case errors.Is(err, context.DeadlineExceeded):
		// Not wrapped: it must not look like the deadline of the caller.
		return fmt.Errorf("no answer from %s within %v: is etcd there, has it a leader, are the scheme and the certificates right?",
			field.Clip(strings.Join(c.Endpoints, ", ")), c.RequestTimeout)
	default:
		return fmt.Errorf("%s: %w", request, err)
	}
}

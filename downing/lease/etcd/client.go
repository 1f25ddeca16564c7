// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/discovery/httpapi"
)

const (
	// answerBytesMax is the longest answer: one key and its value.
	answerBytesMax = 1 << 20
	// silence is how long a connection is silent before the other side is asked whether it
	// is still there.
	silence = 10 * time.Second
)

// connect returns a client with the password and the certificates that the files hold now. It
// waits only if there is a user, whose password etcd checks; ctx ends the wait, and later the
// requests of the client.
func (s *Store) connect(ctx context.Context) (*clientv3.Client, error) {
	c := clientv3.Config{
		Context:              ctx,
		Endpoints:            s.config.Endpoints,
		DialTimeout:          s.config.RequestTimeout,
		DialKeepAliveTime:    silence,
		DialKeepAliveTimeout: silence,
		MaxCallRecvMsgSize:   answerBytesMax,
		Username:             s.config.Username,
		Logger:               zap.NewNop(), // Failures are told by errors.
	}
	if s.config.PasswordFile != "" {
		password, err := httpapi.ReadFile(s.config.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("the password: %w", err)
		}
		c.Password = strings.TrimSpace(string(password))
	}
	if slices.ContainsFunc(s.config.Endpoints, func(e string) bool { return strings.HasPrefix(e, "https:") }) {
		settings, err := s.secure()
		if err != nil {
			return nil, fmt.Errorf("the certificates: %w", err)
		}
		c.TLS = settings
	}
	return clientv3.New(c)
}

// secure reads the certificates.
func (s *Store) secure() (*tls.Config, error) {
	roots, err := httpapi.ReadRoots(s.config.CAFile)
	if err != nil {
		return nil, err
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	if s.config.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(s.config.CertFile, s.config.KeyFile)
		if err != nil {
			return nil, err
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}

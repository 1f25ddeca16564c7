// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	// The longest files of a password and certificates.
	fileBytesMax = 1 << 20
	// The longest answer: 10,000 entries of 800 bytes.
	answerBytesMax = 8 << 20
	// How long a connection is silent before it is asked whether it is still there.
	silence = 10 * time.Second
)

// connect returns a client with what the files hold now. It waits only where there is a
// user, whose password is checked; ctx ends the wait and whatever is asked.
func (d *Discovery) connect(ctx context.Context) (*clientv3.Client, error) {
	c := clientv3.Config{
		Context:              ctx,
		Endpoints:            d.config.Endpoints,
		DialTimeout:          d.config.RequestTimeout,
		DialKeepAliveTime:    silence,
		DialKeepAliveTimeout: silence,
		MaxCallRecvMsgSize:   answerBytesMax,
		Username:             d.config.Username,
		Logger:               zap.NewNop(), // What fails is told by errors.
	}
	if d.config.PasswordFile != "" {
		password, err := readFile(d.config.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("the password: %w", err)
		}
		c.Password = strings.TrimSpace(string(password))
	}
	if slices.ContainsFunc(d.config.Endpoints, func(e string) bool { return strings.HasPrefix(e, "https:") }) {
		settings, err := d.secure()
		if err != nil {
			return nil, fmt.Errorf("the certificates: %w", err)
		}
		c.TLS = settings
	}
	return clientv3.New(c)
}

// secure reads the certificates.
func (d *Discovery) secure() (*tls.Config, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if d.config.CAFile != "" {
		ca, err := readFile(d.config.CAFile)
		if err != nil {
			return nil, err
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("%s holds none in PEM form", d.config.CAFile)
		}
	}
	if d.config.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(d.config.CertFile, d.config.KeyFile)
		if err != nil {
			return nil, err
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}

// readFile reads a file that must not be empty, nor longer than such a file ever is.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // It was only read.
	data, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > fileBytesMax:
		return nil, fmt.Errorf("%s is longer than %d bytes", name, fileBytesMax)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, fmt.Errorf("%s is empty", name)
	}
	return data, nil
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"io"
	"os"
)

// maxFileBytes bounds the file of a token, a password or certificates: a file that is longer
// holds something else.
const maxFileBytes = 1 << 20

// ReadFile reads a short file: that of a token, a password, a name or certificates. A file
// that is empty, but for spaces, or longer than 1 MiB is an error that names the file.
func ReadFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // It was only read.
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxFileBytes:
		return nil, fmt.Errorf("%s is longer than %d bytes", name, maxFileBytes)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, fmt.Errorf("%s is empty", name)
	}
	return data, nil
}

// ReadRoots reads a file of certificates in PEM form, by which servers are known. Without a
// name it returns nil, which means the certificates of the system. A file without any
// certificate is an error.
func ReadRoots(name string) (*x509.CertPool, error) {
	roots, _, err := readRoots(name)
	return roots, err
}

// readRoots returns the text of the file too, by which a client sees that it has changed.
func readRoots(name string) (*x509.CertPool, []byte, error) {
	if name == "" {
		return nil, nil, nil
	}
	text, err := ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, nil, fmt.Errorf("%s holds no certificate in PEM form", name)
	}
	return roots, text, nil
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/quorate/quorate/config/field"
)

// Config is what an operator sets about the requests to a registry, whichever it is. The
// zero value is not valid; start from [Default]. The settings of a method contain it,
// squashed into their own section.
type Config struct {
	// TokenFile names the file of the token that goes along with each request. The file is
	// read anew each time, since tokens rotate. Empty: no token is sent, unless the method
	// finds one by itself.
	TokenFile string `koanf:"token-file"`

	// CAFile names the file of the certificates by which the server is known, in PEM form.
	// The file is read anew for each request. Empty: the certificates of the system, unless
	// the method finds others by itself.
	CAFile string `koanf:"ca-file"`

	// RequestTimeout is how long the server may take for an answer, from 100 milliseconds
	// to 5 minutes, beyond the time for which the server was asked to hold the answer back.
	RequestTimeout time.Duration `koanf:"request-timeout" range:"100ms..5m"`
}

// Default returns the settings without files: no token, the certificates of the system,
// and 10 seconds for a request.
func Default() Config { return Config{RequestTimeout: 10 * time.Second} }

// Paths returns pointers to the names of files, for a caller that makes these relative to a
// directory.
func (c *Config) Paths() []*string { return []*string{&c.TokenFile, &c.CAFile} }

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	return field.Ranges(c)
}

// ParseURL reads the URL of a server: a scheme, http or https, a host, and a path if there
// is one. The error is a [field.Error] at the key of the setting that holds the URL, and does
// not repeat a password in it.
func ParseURL(key, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		if at := strings.LastIndexByte(text, '@'); at >= 0 {
			text = "..." + text[at:] // What comes before may be a password.
		}
		return nil, field.Errorf(key, "%q is no URL", field.Clip(text))
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, field.Errorf(key, "%q is not of the form https://host:port", field.Clip(u.Redacted()))
	}
	return u, nil
}

// IsLocal reports whether a URL leads to this machine by its loopback interface, where
// nobody else can read what is sent.
func IsLocal(u *url.URL) bool {
	host := u.Hostname()
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

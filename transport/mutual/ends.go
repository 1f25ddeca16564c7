// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package mutual

import (
	"crypto/x509"
	"fmt"
	"time"
)

const day = 24 * time.Hour

// End is when a certificate in use ends. Connections that are up do not notice: none can be made from then on.
type End struct {
	// File is where the certificate stands, as given to [Open].
	File string
	// Name is the subject and the names of the certificate, see [Name].
	Name string
	// Authority says that it signs others. Otherwise it is that of this end, or stands behind that in its file.
	Authority bool
	// From and At are when the certificate begins and ends to be valid.
	From, At time.Time
}

// Ends returns when the certificates in use end: that of this end and those behind it in the file, then the
// authorities.
func (f *Files) Ends() []End {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	var all []End
	add := func(c *x509.Certificate, file string, authority bool) {
		all = append(all, End{File: file, Name: Name(c), Authority: authority, From: c.NotBefore, At: c.NotAfter})
	}
	for _, der := range f.pair.content.Certificate {
		if c, err := x509.ParseCertificate(der); err == nil { // What stands behind the first was never parsed.
			add(c, f.names.Certificate, false)
		}
	}
	for _, c := range f.roots.content.all {
		add(c, f.names.Authorities, true)
	}
	return all
}

// Level returns within how many days the certificate ends: 30, 7 or 1; 0 if it has ended; and -1 if there is no reason
// to warn. One that is made for a short time is no reason before two thirds of its life are over.
func (e End) Level(now time.Time) int {
	left := e.At.Sub(now)
	if left <= 0 {
		return 0
	}
	if left < e.At.Sub(e.From)/3 {
		for _, days := range []int{1, 7, 30} {
			if left <= time.Duration(days)*day {
				return days
			}
		}
	}
	return -1
}

// Warning returns what to do about the end of the certificate, on one line; empty if there is no reason to warn.
func (e End) Warning(now time.Time) string {
	what, cure := "the certificate", "replace the file by a new one, which needs no restart"
	if e.Authority {
		what, cure = "the authority", "list its successor beside it, and take it out when no node shows a certificate signed by it"
	}
	text := fmt.Sprintf("%s %s in %s", what, e.Name, e.File)
	at := e.At.UTC().Format(time.DateTime)
	switch level := e.Level(now); {
	case level < 0:
		return ""
	case level == 0:
		return fmt.Sprintf("%s has expired on %s, so that no connection can be made by it: %s", text, at, cure)
	case level == 1:
		return fmt.Sprintf("%s expires within a day, on %s: %s", text, at, cure)
	default:
		return fmt.Sprintf("%s expires within %d days, on %s: %s", text, level, at, cure)
	}
}

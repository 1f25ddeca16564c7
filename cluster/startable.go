// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/transport/bearer"
	"github.com/quorate/quorate/transport/mutual"
)

// What can be known before a node binds an address: its listeners, compared with one another; then its files, each read
// in the way in which it will be used. A file that this user may not read is no fault here: the user of the node may,
// and otherwise the part that needs the file says so.

// listener is an address on which a node listens.
type listener struct{ key, address string }

// listeners reports addresses of which two cannot be bound.
func (s *startCheck) listeners() error {
	transport := listener{"transport.bind", s.Transport.Bind}
	if transport.address == "" {
		transport = listener{"node.address", s.Node.Address}
	}
	all := []listener{
		transport, {"management.address", s.Management.Address}, {"management.health.address", s.Management.Health.Address}, {"gateway.address", s.Gateway.Address},
	}
	var faults field.Faults
	for i, l := range all {
		for _, other := range all[:i] {
			if l.meets(other) {
				faults.Add(field.Errorf(l.key, "%s is that of %s too: the two have different doors, choose another port", l.address, other.key))
				break
			}
		}
	}
	return faults.Err()
}

// meets reports whether one of two addresses cannot be bound while the other is. Sections report texts that are no
// addresses.
func (l listener) meets(other listener) bool {
	host, port, err := net.SplitHostPort(l.address)
	otherHost, otherPort, otherErr := net.SplitHostPort(other.address)
	if err != nil || otherErr != nil || port != otherPort || port == "0" {
		return false
	}
	return host == otherHost || covers(host, otherHost) || covers(otherHost, host)
}

// covers reports whether to listen on one host is to listen on another one too.
func covers(host, other string) bool {
	if host == "" || host == "::" {
		return true
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if other == "localhost" {
		other = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	otherIP, otherErr := netip.ParseAddr(other)
	if err != nil {
		return false
	}
	if otherErr != nil { // A name, which stands for one address of the machine or another.
		return ip.IsUnspecified()
	}
	return ip.Unmap() == otherIP.Unmap() || ip.IsUnspecified() && otherIP.Unmap().Is4()
}

// certificates reports files by which no connection can be made.
func (s *startCheck) certificates() error {
	var faults field.Faults
	for _, section := range securedOf(&s.Config) {
		if !section.files.Complete() { // No files are named, or the section reports which one is missing.
			continue
		}
		files := *section.files
		for _, path := range files.Paths() {
			*path = s.resolve(*path)
		}
		_, found := mutual.Inspect(files, needed(s.Config, section.key))
		for _, f := range found {
			if !f.Works && !errors.Is(f.Err, fs.ErrPermission) {
				faults.Add(&field.Error{Key: section.key + "." + f.Key, Reason: f.File + ": " + f.Reason, Err: f.Err})
			}
		}
	}
	return faults.Err()
}

// needed returns what the certificate of a section must be good for.
func needed(c Config, section string) mutual.Requirements {
	if section != "transport.tls" {
		return mutual.Requirements{Serves: true}
	}
	host, _, err := net.SplitHostPort(c.Node.Address)
	if err != nil { // The section node reports it.
		return mutual.Requirements{}
	}
	return mutual.Requirements{
		Hosts: []string{host}, Identity: mutual.Identity{Cluster: c.Cluster.Name, Required: c.Transport.RequireIdentity}, Roles: c.Node.Roles,
	}
}

// files reports files of tokens that let nobody in, directories that are none, or in which this user cannot write, and
// a path at which no socket can be made.
func (s *startCheck) files() error {
	var faults field.Faults
	for _, f := range []struct{ key, path string }{
		{"management.operators.token-file", s.Management.Operators.TokenFile}, {"gateway.token-file", s.Gateway.TokenFile},
	} {
		if f.path == "" {
			continue
		}
		if err := bearer.Check(s.resolve(f.path)); err != nil && !errors.Is(err, fs.ErrPermission) {
			faults.Add(field.Errorf(f.key, "%w", err))
		}
	}
	for _, d := range []struct{ key, path string }{{"node.data-dir", s.Node.DataDir}, {"ddata.dir", s.Data.Dir}} {
		if d.path == "" {
			continue
		}
		if err := obstacle(s.resolve(d.path)); err != nil {
			faults.Add(field.Errorf(d.key, "%w", err))
		}
	}
	if socket := s.Management.Operators.Socket; socket != "" {
		path := s.resolve(socket)
		err := management.CheckSocket(path)
		if err == nil {
			err = writable(filepath.Dir(path))
		}
		if err != nil {
			faults.Add(field.Errorf("management.operators.socket", "%w", err))
		}
	}
	return faults.Err()
}

// obstacle returns what stands in the way of a directory, or of making it; nil if nothing does.
func obstacle(path string) error {
	for {
		info, err := os.Stat(path)
		switch parent := filepath.Dir(path); {
		case err == nil && !info.IsDir():
			return fmt.Errorf("%s is no directory: name one, which is made if it is not there", path)
		case err == nil:
			return writable(path)
		case parent == path:
			return nil
		default:
			path = parent
		}
	}
}

// writable reports a directory in which this user cannot make files.
func writable(dir string) error {
	if err := access(dir); err != nil {
		return fmt.Errorf("this user cannot write in %s: %w: give it to the user of the node, or name another directory", dir, err)
	}
	return nil
}

// plugins reports plugins that are chosen and cannot be started.
func (s *startCheck) plugins() error {
	var faults field.Faults
	for _, name := range slices.Sorted(maps.Keys(s.Plugins)) {
		if s.chooses(name) {
			faults.Add(s.unstartable(name))
		}
	}
	return faults.Err()
}

// unstartable returns why a plugin cannot be started on this machine, nil if nothing is in the way.
func (s *startCheck) unstartable(name string) error {
	section, key := s.Plugins[name], "plugins."+name
	if found := variable.FindString(section.Path); found != "" {
		return field.Errorf(key+".path", "%q has the variable %s, and nothing replaces it in a file: write the path", field.Clip(section.Path), found)
	}
	if s.options.startable == nil || section.Path == "" { // Nothing starts it, or its own section reports that.
		return nil
	}
	section.Path = s.resolve(section.Path)
	return field.Within(key, s.options.startable(section))
}

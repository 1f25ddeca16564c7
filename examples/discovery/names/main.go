// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command names is a DNS server to play with. Its first line on the standard output is its
// address; each line that it reads changes what the service lists, and is answered with what
// that is then. "+ 127.0.0.1:7946" says that the service has a node there, and
// "- 127.0.0.1:7946" that it has none there any more. Without a node the name does not
// exist. The program ends with its standard input.
package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/discovery/dns/dnstest"
)

const (
	// service is the name whose nodes are listed, domain that of their hosts.
	service = "_node._tcp.bank.example."
	domain  = ".bank.example."

	// ttl is how long answers may be kept.
	ttl = time.Second
)

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		slog.Error("names", "error", err)
		os.Exit(1)
	}
}

// serve answers queries until the lines end.
func serve(in io.Reader, out io.Writer) error {
	server, err := dnstest.Listen()
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }() // The process ends.
	if _, err := fmt.Fprintln(out, server.Addr()); err != nil {
		return err
	}
	var nodes []netip.AddrPort
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		said := "I need + or -, and an address such as 127.0.0.1:7946"
		if sign, text, _ := strings.Cut(strings.TrimSpace(lines.Text()), " "); sign == "+" || sign == "-" {
			if address, err := netip.ParseAddrPort(strings.TrimSpace(text)); err == nil {
				nodes = changed(nodes, sign, address)
				said = publish(server, nodes)
			}
		}
		if _, err := fmt.Fprintln(out, said); err != nil {
			return err
		}
	}
	return lines.Err()
}

// changed returns the nodes with one more or one less.
func changed(nodes []netip.AddrPort, sign string, address netip.AddrPort) []netip.AddrPort {
	nodes = slices.DeleteFunc(nodes, func(n netip.AddrPort) bool { return n == address })
	if sign == "+" {
		nodes = append(nodes, address)
	}
	return nodes
}

// publish has the server list nodes, each as a service (SRV) of a host of its own, and
// says so in one line.
func publish(server *dnstest.Server, nodes []netip.AddrPort) string {
	if len(nodes) == 0 {
		server.Remove(service)
		return service + " does not exist"
	}
	var services []string
	said := []string{service, "lists"}
	for _, n := range nodes {
		host := strings.NewReplacer(".", "-", ":", "-").Replace(n.Addr().String()) + domain
		kind := "A"
		if n.Addr().Is6() {
			kind = "AAAA"
		}
		server.Set(host, kind, ttl, n.Addr().String())
		services = append(services, fmt.Sprintf("0 0 %d %s", n.Port(), host))
		said = append(said, n.String())
	}
	server.Set(service, "SRV", ttl, services...)
	return strings.Join(said, " ")
}

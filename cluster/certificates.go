// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/mutual"
)

// The certificates of a node are watched by the clock, since connections live on when they end: as gauges, as warnings
// beside the node's readiness, in the log ([endings]), and over HTTP.

// certificatesEvery is how often it is looked whether the log has to be told of a certificate.
const certificatesEvery = time.Hour

// certificateSection is a section that names certificate files.
type certificateSection struct {
	key   string // as in transport.tls
	files *transport.TLSFiles
}

// securedOf returns the sections that may name certificate files.
func securedOf(c *Config) []certificateSection {
	return []certificateSection{{"transport.tls", &c.Transport.TLS}, {"management.tls", &c.Management.TLS}, {"gateway.tls", &c.Gateway.TLS}}
}

// Certificates is what a node says about its certificates.
type Certificates struct {
	Self         string        `json:"self"`         // The node that was asked.
	Certificates []Certificate `json:"certificates"` // By section; its own first, then the authorities.
}

// Certificate is a certificate that is in use.
type Certificate struct {
	Section    string    `json:"section"` // The settings that name the file, such as transport.tls.
	File       string    `json:"file"`
	Name       string    `json:"name"` // Subject and names.
	Authority  bool      `json:"authority"`
	ValidFrom  time.Time `json:"valid_from"`
	ValidUntil time.Time `json:"valid_until"`

	// Warning says what to do, if it ends within 30 days and a third of its life; empty otherwise.
	Warning string `json:"warning,omitempty"`
}

// certificates watches the certificate files of a node.
type certificates struct {
	log      *slog.Logger
	sections []string // Those that name files, as in transport.tls.
	files    []*mutual.Files
	running  sync.WaitGroup
	cancel   context.CancelFunc
	unmeter  func()
}

// startCertificates begins to watch the certificate files of all sections that name some.
func startCertificates(_ context.Context, b *builder) error {
	c, err := openCertificates(b.cfg.Config)
	if err != nil {
		return b.locate(err)
	}
	c.start(b.meters, b.Self(), b.log)
	b.certificates = c
	return nil
}

// openCertificates opens the files of all sections that name some.
func openCertificates(cfg Config) (*certificates, error) {
	c := &certificates{}
	for _, s := range securedOf(&cfg) {
		if !s.files.Complete() {
			continue
		}
		files, err := mutual.Open(*s.files, nil)
		if err != nil {
			return nil, field.Errorf(s.key, "%w", err)
		}
		c.sections, c.files = append(c.sections, s.key), append(c.files, files)
	}
	return c, nil
}

// start begins to measure and to log when certificates end, until stop.
func (c *certificates) start(meters metric.MeterProvider, self gossip.NodeID, log *slog.Logger) {
	c.log = log
	c.unmeter = meter.ObserveOrLog(meter.New(meters, "github.com/quorate/quorate/transport/mutual", self), []meter.Row[[]Certificate]{
		meter.FloatGauge("quorate.certificate.left", "s", "How long the certificate that ends first is still valid; below 0 when it has expired.",
			earliest(func(c Certificate) time.Duration { return time.Until(c.ValidUntil) })),
		meter.FloatGauge("quorate.certificate.life", "s", "For how long that certificate was made.",
			earliest(func(c Certificate) time.Duration { return c.ValidUntil.Sub(c.ValidFrom) })),
	}, func(context.Context) []Certificate { return c.all(time.Now()) }, log)
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(context.Background())
	// Owned by the part: ends with its context, and stop waits for it.
	c.running.Go(func() { c.watch(ctx) })
}

func (c *certificates) stop() {
	c.unmeter()
	c.cancel()
	c.running.Wait()
}

func stopCertificates(_ context.Context, n *Node) error {
	n.certificates.stop()
	return nil
}

// earliest shows a figure of the certificate that ends first, of each section: of its own, and of the authorities.
func earliest(figure func(Certificate) time.Duration) func([]Certificate, func(float64, ...attribute.KeyValue)) {
	return func(all []Certificate, show func(float64, ...attribute.KeyValue)) {
		for i, c := range all {
			first := func(other Certificate) bool {
				return other.Section == c.Section && other.Authority == c.Authority
			}
			if slices.ContainsFunc(all[:i], first) { // It was shown with the first of its sort.
				continue
			}
			for _, other := range all[i:] {
				if first(other) && other.ValidUntil.Before(c.ValidUntil) {
					c = other
				}
			}
			role := "own"
			if c.Authority {
				role = "authority"
			}
			show(figure(c).Seconds(), attribute.String("quorate.section", c.Section), attribute.String("quorate.certificate.role", role))
		}
	}
}

// all returns the certificates in use.
func (c *certificates) all(now time.Time) []Certificate {
	all := []Certificate{}
	for i, section := range c.sections {
		for _, e := range c.files[i].Ends() {
			all = append(all, Certificate{
				Section: section, File: e.File, Name: e.Name, Authority: e.Authority, ValidFrom: e.From.UTC(), ValidUntil: e.At.UTC(), Warning: e.Warning(now),
			})
		}
	}
	return all
}

// warnings returns what to do about certificates that end soon.
func (c *certificates) warnings() []string {
	var all []string
	for _, one := range c.all(time.Now()) {
		if one.Warning != "" {
			all = append(all, one.Section+": "+one.Warning)
		}
	}
	return all
}

// watch logs what is due, until the context ends.
func (c *certificates) watch(ctx context.Context) {
	ticker := time.NewTicker(certificatesEvery)
	defer ticker.Stop()
	var said endings
	for {
		for _, line := range said.due(c.all(time.Now())) {
			c.log.WarnContext(ctx, "a certificate ends", "section", line.Section, "warning", line.Warning)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// endings are the warnings that the log has, by certificate: each level has a sentence of its own. A certificate in the
// place of another one is another one.
type endings map[Certificate]struct{}

// due returns the certificates of which the log has to be told, and forgets those that are not in use any more.
func (e *endings) due(all []Certificate) (due []Certificate) {
	said := endings{}
	for _, c := range all {
		if c.Warning == "" {
			continue
		}
		if _, known := (*e)[c]; !known {
			due = append(due, c)
		}
		said[c] = struct{}{}
	}
	*e = said
	return due
}

// certificateRoutes returns the route about the certificates of the node:
//
//	GET /v1/certificates   [Certificates]
func certificateRoutes(n *Node) []management.Route {
	return []management.Route{{
		Path: "/v1/certificates", Summary: "The certificates in use, and when they end", Result: Certificates{},
		Answer: func(context.Context, management.Request) (any, error) {
			return Certificates{Self: n.Self().String(), Certificates: n.certificates.all(time.Now())}, nil
		},
	}}
}

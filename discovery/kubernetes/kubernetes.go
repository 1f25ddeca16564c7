// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/follow"
	"github.com/quorate/quorate/discovery/kubernetes/kubeapi"

	"github.com/quorate/quorate/config/field"
)

// Method is the name by which a configuration selects this method, by convention.
const Method = "kubernetes"

// Discovery finds contact points among pods. Use [New]; Close it in the end. It is safe for
// concurrent use.
type Discovery struct {
	config Config
	client *client
	set    *follow.Set[string, *store]
}

var _ discovery.Discovery = (*Discovery)(nil)

// New returns the method for a configuration, which it validates. In a pod it reads the
// namespace of the service account; it connects to nothing before the first lookup. The
// error wraps [ErrNotInCluster] if no server is configured and none is named by a pod.
func New(config Config) (*Discovery, error) {
	return newDiscovery(config, kubeapi.ServiceAccount, follow.DefaultLimits())
}

func newDiscovery(config Config, account string, limits follow.Limits) (*Discovery, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	c, namespace, err := newClient(config, account)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	s := &source{
		client: c, resource: podResource(), namespace: namespace,
		timeout: config.RequestTimeout, watchTimeout: config.WatchTimeout, brief: min(briefWatch, limits.PauseMin),
	}
	if config.Source == SourceEndpointSlices {
		s.resource = sliceResource()
	}
	return &Discovery{config: config, client: c, set: follow.New(limits, s.follow)}, nil
}

// Lookup returns the address of each pod of a service. The service takes the place of
// "%s" in the configuration. The port of the query is the name of a port that the pods
// declare, or a number, or empty for contact points without a port; a protocol such as "tcp"
// tells ports of the same name apart.
//
// The first lookup of a service waits until its objects are listed. Later lookups are answered
// from the list and the watch that followed. The error wraps a [StatusError] if the server
// refuses, and [ErrMalformed] if no API server would give such an answer.
func (d *Discovery) Lookup(ctx context.Context, q discovery.Query) (discovery.Targets, error) {
	selector, err := d.selector(q.Service)
	if err != nil {
		return discovery.Targets{}, fmt.Errorf("kubernetes: %w", err)
	}
	found, err := d.set.Latest(ctx, selector)
	if err != nil {
		return discovery.Targets{}, fmt.Errorf("kubernetes: %w", err)
	}
	targets, err := found.targets(endpointFilter{
		port: q.Port, protocol: q.Protocol, family: d.config.IPFamily, readyOnly: d.config.ReadyOnly,
	})
	if err != nil {
		return discovery.Targets{}, fmt.Errorf("kubernetes: %w", err)
	}
	targets.Reason = "kubernetes: " + targets.Reason
	return targets, nil
}

// selector returns the label selector for a service.
func (d *Discovery) selector(service string) (string, error) {
	if d.config.Source == SourceEndpointSlices {
		name := strings.ReplaceAll(d.config.Service, placeholder, service)
		if !kubeapi.IsName(name) {
			return "", fmt.Errorf("%q is no name of a Service", field.Clip(name))
		}
		return "kubernetes.io/service-name=" + name, nil
	}
	if strings.Contains(d.config.Selector, placeholder) && !isLabelValue(service) {
		return "", fmt.Errorf("the service %q cannot be the value of a label", field.Clip(service))
	}
	return strings.ReplaceAll(d.config.Selector, placeholder, service), nil
}

// Close ends all watches and waits for their goroutines. It may be called more than
// once, and returns nil.
func (d *Discovery) Close() error {
	return errors.Join(d.set.Close(), d.client.api.Close())
}

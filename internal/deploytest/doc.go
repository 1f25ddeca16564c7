// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package deploytest tests what is in the directory deploy: manifests, images and alerts, and the
// dashboards in docs/grafana.
//
// The manifests are built by kustomize, decoded strictly by the types of Kubernetes, and held to what
// a cluster needs of them; the configuration of a node in them is checked by quorate config check,
// with the environment, the mounted files and the certificates that a pod would have. Alerts are
// evaluated by Prometheus over series in which they must fire, and others in which they must not.
// Alerts and the queries of dashboards also are evaluated over scrapes of a cluster of whole nodes.
// What such a cluster traces and measures is sent by OTLP to the receiver of the collector.
//
// It is a module of its own, since the libraries for that would decide the versions of all others.
package deploytest

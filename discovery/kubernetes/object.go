// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

// The objects of the API become endpoints: decodePod and decodeSlice read a few fields of a pod
// or an EndpointSlice, and checked refuses objects that the API would not have accepted. Only
// the endpoints are kept.

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/config/field"
)

// The bounds of one object. The API allows 100 ports and 1,000 endpoints in a slice; no real
// pod has more ports than that.
const (
	maxPorts     = 100
	maxEndpoints = 1000
	maxAddresses = 100
	maxTextBytes = 253 // the longest name of an object, and longer than a port or an address
)

// resource is a kind of object that can be listed and watched.
type resource struct {
	group  string // the API group, empty for the core
	name   string // the name in paths and in roles
	list   string // the kind of a list of such objects
	decode func(json.RawMessage) (object, error)
}

// path returns the path of the objects in a namespace.
func (r resource) path(namespace string) string {
	root := "/api/v1"
	if r.group != "" {
		root = "/apis/" + r.group + "/v1"
	}
	return root + "/namespaces/" + namespace + "/" + r.name
}

func podResource() resource {
	return resource{name: "pods", list: "PodList", decode: decodePod}
}

func sliceResource() resource {
	return resource{
		group: "discovery.k8s.io", name: "endpointslices", list: "EndpointSliceList", decode: decodeSlice,
	}
}

// object is what is kept of an object of the API.
type object struct {
	name      string
	version   string
	endpoints []endpoint
}

// endpoint is one pod, or one entry of an EndpointSlice.
type endpoint struct {
	id        string   // the same for one pod in several slices
	addresses []string // in the order of the API, not checked
	ports     []port
	ready     bool
	leftOut   string // why the endpoint is no contact point for any query; empty if it may be one
}

// port is a port that an object declares.
type port struct {
	Name     string `json:"name"`
	Protocol string `json:"protocol"` // empty means TCP
	Number   uint16 `json:"-"`
}

type metadata struct {
	Name              string `json:"name"`
	UID               string `json:"uid"`
	ResourceVersion   string `json:"resourceVersion"`
	DeletionTimestamp string `json:"deletionTimestamp"`
}

type podJSON struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Containers []struct {
			Ports []struct {
				port
				ContainerPort uint16 `json:"containerPort"`
			} `json:"ports"`
		} `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase  string `json:"phase"`
		PodIP  string `json:"podIP"`
		PodIPs []struct {
			IP string `json:"ip"`
		} `json:"podIPs"`
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

func decodePod(data json.RawMessage) (object, error) {
	var pod podJSON
	if err := json.Unmarshal(data, &pod); err != nil {
		return object{}, fmt.Errorf("a pod that cannot be read: %w", err)
	}
	e := endpoint{id: pod.Metadata.UID}
	for _, container := range pod.Spec.Containers {
		for _, p := range container.Ports {
			e.ports = append(e.ports, port{Name: p.Name, Protocol: p.Protocol, Number: p.ContainerPort})
		}
	}
	for _, ip := range pod.Status.PodIPs {
		e.addresses = append(e.addresses, ip.IP)
	}
	// Servers before 1.20 could leave out the list.
	if len(e.addresses) == 0 && pod.Status.PodIP != "" {
		e.addresses = []string{pod.Status.PodIP}
	}
	for _, c := range pod.Status.Conditions {
		e.ready = e.ready || c.Type == "Ready" && c.Status == "True"
	}
	switch {
	case pod.Metadata.DeletionTimestamp != "":
		e.leftOut = "terminating"
	case pod.Status.Phase != "Running":
		e.leftOut = "not running"
	case len(e.addresses) == 0:
		e.leftOut = "without an address"
	}
	return checked(object{name: pod.Metadata.Name, version: pod.Metadata.ResourceVersion, endpoints: []endpoint{e}})
}

type sliceJSON struct {
	Metadata  metadata `json:"metadata"`
	Endpoints []struct {
		Addresses  []string `json:"addresses"`
		Conditions struct {
			Ready       *bool `json:"ready"`
			Terminating *bool `json:"terminating"`
		} `json:"conditions"`
		TargetRef struct {
			UID string `json:"uid"`
		} `json:"targetRef"`
	} `json:"endpoints"`
	Ports []struct {
		port
		Port uint16 `json:"port"`
	} `json:"ports"`
}

func decodeSlice(data json.RawMessage) (object, error) {
	var slice sliceJSON
	if err := json.Unmarshal(data, &slice); err != nil {
		return object{}, fmt.Errorf("an EndpointSlice that cannot be read: %w", err)
	}
	o := object{name: slice.Metadata.Name, version: slice.Metadata.ResourceVersion}
	var ports []port
	for _, p := range slice.Ports {
		ports = append(ports, port{Name: p.Name, Protocol: p.Protocol, Number: p.Port})
	}
	for _, given := range slice.Endpoints {
		// All addresses of an endpoint lead to the same pod; the API says to use the first.
		e := endpoint{id: given.TargetRef.UID, addresses: given.Addresses[:min(1, len(given.Addresses))], ports: ports}
		e.ready = given.Conditions.Ready == nil || *given.Conditions.Ready
		switch {
		// With publishNotReadyAddresses a terminating endpoint says that it is ready.
		case given.Conditions.Terminating != nil && *given.Conditions.Terminating:
			e.leftOut = "terminating"
		case len(e.addresses) == 0:
			e.leftOut = "without an address"
		case e.id == "":
			e.id = e.addresses[0]
		}
		o.endpoints = append(o.endpoints, e)
	}
	return checked(o)
}

// checked refuses an object that the API would not have accepted.
func checked(o object) (object, error) {
	if o.name == "" {
		return object{}, errors.New("an object without a name")
	}
	if len(o.endpoints) > maxEndpoints {
		return object{}, fmt.Errorf("%q has %d endpoints, more than %d", field.Clip(o.name), len(o.endpoints), maxEndpoints)
	}
	for _, e := range o.endpoints {
		if len(e.ports) > maxPorts || len(e.addresses) > maxAddresses {
			return object{}, fmt.Errorf("%q has %d ports and %d addresses", field.Clip(o.name), len(e.ports), len(e.addresses))
		}
		texts := append([]string{o.name, e.id}, e.addresses...)
		for _, p := range e.ports {
			texts = append(texts, p.Name, p.Protocol)
		}
		if slices.ContainsFunc(texts, func(text string) bool { return len(text) > maxTextBytes }) {
			return object{}, fmt.Errorf("%q has a name or an address of more than %d bytes", field.Clip(o.name), maxTextBytes)
		}
	}
	return o, nil
}

// find returns the number of a port by its name and protocol; 0 if it is not declared.
func (e endpoint) find(name, protocol string) uint16 {
	for _, p := range e.ports {
		if p.Name == name && (protocol == "" || strings.EqualFold(protocol, p.transport())) {
			return p.Number
		}
	}
	return 0
}

func (p port) transport() string {
	if p.Protocol == "" {
		return "TCP"
	}
	return p.Protocol
}

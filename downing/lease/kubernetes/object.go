// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

const (
	// maxDuration is more than any lease of this store lasts.
	maxDuration = time.Hour
	// timeForm is that of the times in a Lease.
	timeForm = "2006-01-02T15:04:05.000000Z07:00"
)

// object is a Lease. What this store does not know of it is kept as it came.
type object struct {
	whole map[string]json.RawMessage
	spec  map[string]json.RawMessage

	version     string
	holder      string
	duration    time.Duration
	transitions int32
}

// newObject returns a lease that is not on the server yet.
func newObject(name, namespace string) (*object, error) {
	metadata, err := json.Marshal(map[string]string{"name": name, "namespace": namespace})
	if err != nil {
		return nil, err
	}
	return &object{
		whole: map[string]json.RawMessage{
			"apiVersion": json.RawMessage(`"coordination.k8s.io/v1"`), "kind": json.RawMessage(`"Lease"`), "metadata": metadata,
		},
		spec: make(map[string]json.RawMessage),
	}, nil
}

// decode reads the Lease with a name. The error wraps [ErrMalformed].
func decode(data []byte, name string) (*object, error) {
	if len(data) > maxAnswerBytes {
		return nil, fmt.Errorf("%w: the lease has more than %d bytes", ErrMalformed, maxAnswerBytes)
	}
	var known struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name            string `json:"name"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Spec struct {
			HolderIdentity       string `json:"holderIdentity"`
			LeaseDurationSeconds int64  `json:"leaseDurationSeconds"`
			LeaseTransitions     int32  `json:"leaseTransitions"`
		} `json:"spec"`
	}
	o := &object{spec: make(map[string]json.RawMessage)}
	if err := json.Unmarshal(data, &known); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if err := json.Unmarshal(data, &o.whole); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if spec, ok := o.whole["spec"]; ok {
		if err := json.Unmarshal(spec, &o.spec); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
	}
	if o.spec == nil { // It was null.
		o.spec = make(map[string]json.RawMessage)
	}
	switch {
	case known.Kind != "Lease" || known.Metadata.Name != name || known.Metadata.ResourceVersion == "":
		return nil, fmt.Errorf("%w: it is no Lease with the name %q and a resource version", ErrMalformed, name)
	case known.Spec.LeaseDurationSeconds < 0 || known.Spec.LeaseDurationSeconds > int64(maxDuration/time.Second):
		return nil, fmt.Errorf("%w: a lease of %d seconds is not in the range from 0 to %v", ErrMalformed, known.Spec.LeaseDurationSeconds, maxDuration)
	case known.Spec.LeaseTransitions < 0:
		return nil, fmt.Errorf("%w: leaseTransitions are %d", ErrMalformed, known.Spec.LeaseTransitions)
	}
	o.version, o.holder = known.Metadata.ResourceVersion, known.Spec.HolderIdentity
	o.duration = time.Duration(known.Spec.LeaseDurationSeconds) * time.Second
	o.transitions = known.Spec.LeaseTransitions
	return o, nil
}

// held returns the lease as a holder has it from a moment on; an empty holder gives it back.
func (o *object) held(holder string, ttl time.Duration, transitions int32, now time.Time) (*object, error) {
	next := &object{whole: maps.Clone(o.whole), spec: maps.Clone(o.spec), version: o.version, holder: holder, duration: ttl, transitions: transitions}
	moment := now.UTC().Format(timeForm)
	fields := map[string]any{
		"holderIdentity": holder, "leaseDurationSeconds": int64((ttl + time.Second - 1) / time.Second), "leaseTransitions": transitions, "renewTime": moment,
	}
	if holder != o.holder {
		fields["acquireTime"] = moment
	}
	for key, value := range fields {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		next.spec[key] = text
	}
	return next, nil
}

// encode returns the text of a lease.
func (o *object) encode() ([]byte, error) {
	spec, err := json.Marshal(o.spec)
	if err != nil {
		return nil, err
	}
	whole := maps.Clone(o.whole)
	whole["spec"] = spec
	return json.Marshal(whole)
}

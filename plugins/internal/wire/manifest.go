// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"

	"github.com/quorate/quorate/plugins"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Limits of what a plugin declares about itself and its settings, and of errors.
const (
	MaxSettingErrors   = 100
	MaxSettingKeyBytes = 256
	MaxNameBytes       = 128
	MaxTextBytes       = 1024
)

// PolicyToProto returns the number of a policy, the number of none for an unknown one.
func PolicyToProto(k plugins.Policy) pluginv1.Policy {
	return pluginv1.Policy(slices.Index(plugins.Policies(), k) + 1)
}

// ClassToProto returns a class as a message.
func ClassToProto(c plugins.Class) *pluginv1.Class {
	return &pluginv1.Class{Pure: c.Pure, MajorityOnly: c.MajorityOnly}
}

// ManifestFromProto returns what a plugin declares, or the faults of its settings, which
// the plugin sends instead: an error of type [plugins.SettingErrors].
func ManifestFromProto(p *pluginv1.ConfigureResponse) (plugins.Manifest, error) {
	if faults := p.GetErrors(); len(faults) > 0 {
		var errs plugins.SettingErrors
		for _, f := range faults[:min(len(faults), MaxSettingErrors)] {
			errs = append(errs, plugins.SettingError{
				Key: Line(f.GetKey(), MaxSettingKeyBytes), Reason: Line(f.GetReason(), MaxTextBytes),
			})
		}
		return plugins.Manifest{}, errs
	}
	return Declared(p)
}

// Declared returns what a plugin declares, in the answer to Configure or to Describe.
func Declared(p interface {
	GetName() string
	GetVersion() string
	GetPolicy() pluginv1.Policy
	GetClass() *pluginv1.Class
},
) (plugins.Manifest, error) {
	policies := plugins.Policies()
	policy := p.GetPolicy()
	switch {
	case policy < 1 || int(policy) > len(policies):
		return plugins.Manifest{}, Malformed("policy", "%d does not exist", policy)
	case p.GetName() == "" || Line(p.GetName(), MaxNameBytes) != p.GetName():
		return plugins.Manifest{}, Malformed("name", "%.200q is no name of 1 to %d bytes in one line", p.GetName(), MaxNameBytes)
	case Line(p.GetVersion(), MaxNameBytes) != p.GetVersion():
		return plugins.Manifest{}, Malformed("version", "%.200q is no text of up to %d bytes in one line", p.GetVersion(), MaxNameBytes)
	}
	return plugins.Manifest{
		Name: p.GetName(), Version: p.GetVersion(), Policy: policies[policy-1], Contract: plugins.Version1,
		Class: plugins.Class{Pure: p.GetClass().GetPure(), MajorityOnly: p.GetClass().GetMajorityOnly()},
	}, nil
}

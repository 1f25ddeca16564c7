// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"

	"github.com/quorate/quorate/plugins"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Limits of what a plugin says about itself and its settings, and in errors.
const (
	SettingErrorsMax   = 100
	SettingKeyBytesMax = 256
	NameBytesMax       = 128
	TextBytesMax       = 1024
)

// KindToProto returns the number of a kind, that of none if it does not exist.
func KindToProto(k plugins.Kind) pluginv1.Kind {
	return pluginv1.Kind(slices.Index(plugins.Kinds(), k) + 1)
}

// ManifestFromProto returns what a plugin says about itself, or the faults of its
// settings, which it then says instead: of type [plugins.SettingErrors].
func ManifestFromProto(p *pluginv1.ConfigureResponse) (plugins.Manifest, error) {
	if faults := p.GetErrors(); len(faults) > 0 {
		var errs plugins.SettingErrors
		for _, f := range faults[:min(len(faults), SettingErrorsMax)] {
			errs = append(errs, plugins.SettingError{
				Key: Line(f.GetKey(), SettingKeyBytesMax), Reason: Line(f.GetReason(), TextBytesMax),
			})
		}
		return plugins.Manifest{}, errs
	}
	kinds := plugins.Kinds()
	kind := p.GetKind()
	switch {
	case kind < 1 || int(kind) > len(kinds):
		return plugins.Manifest{}, Malformed("kind", "%d does not exist", kind)
	case p.GetName() == "" || Line(p.GetName(), NameBytesMax) != p.GetName():
		return plugins.Manifest{}, Malformed("name", "%.200q is no name of 1 to %d bytes in one line", p.GetName(), NameBytesMax)
	case Line(p.GetVersion(), NameBytesMax) != p.GetVersion():
		return plugins.Manifest{}, Malformed("version", "%.200q is no text of up to %d bytes in one line", p.GetVersion(), NameBytesMax)
	}
	return plugins.Manifest{
		Name: p.GetName(), Version: p.GetVersion(), Kind: kinds[kind-1], Contract: plugins.Version1,
		Class: plugins.Class{Pure: p.GetClass().GetPure(), MajorityOnly: p.GetClass().GetMajorityOnly()},
	}, nil
}

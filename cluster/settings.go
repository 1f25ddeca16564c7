// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"

	"github.com/quorate/quorate/config"
)

// SettingsReport is the answer of a node that was asked for its settings.
type SettingsReport struct {
	Self     string         `json:"self"`               // The node that was asked.
	Settings []config.Value `json:"settings,omitempty"` // With which it runs, those of a section sorted by key.
	// Pending are the settings that its files and providers have otherwise by now, and Faults what is wrong with
	// those: a reload takes nothing over then, nor when one of the settings needs a restart.
	Pending []config.Difference `json:"pending,omitempty"`
	Faults  []string            `json:"faults,omitempty"`
}

// fromProgram is the source of a setting that options of the program have changed.
const fromProgram = "the program"

// Settings reads and merges files as [Load] does, and lists each setting with its value and where it was written. What
// only a start would find is not looked for: the files may be those of another machine. The settings of a section that
// [Extensions] name come after those of the node.
func Settings(own Extensions, paths ...string) ([]config.Value, error) {
	o, file, beside, err := read(own, paths)
	if err != nil {
		return nil, err
	}
	c := &linkCheck{Config: Default(), options: o}
	if err := file.DecodeAll(c, beside...); err != nil {
		return nil, err
	}
	all, err := file.Values("", c.Config)
	for _, s := range beside {
		if err == nil {
			var own []config.Value
			own, err = file.Values(s.Name, s.Into)
			all = append(all, own...)
		}
	}
	return all, err
}

// report says with which settings the node runs, and what its files and providers have otherwise by now. These are read
// while other commands may run.
func (r *reloader) report(ctx context.Context) (SettingsReport, error) {
	report := SettingsReport{Self: r.node.Self().String()}
	var file *config.File
	if err := r.node.operate(ctx, func(context.Context) error { file = r.file; return nil }); err != nil {
		return report, err
	}
	var now *config.File
	if file != nil {
		var err error
		now, err = file.Reload()
		report.Faults = textsOf(err)
	}
	return report, r.node.operate(ctx, func(context.Context) (err error) {
		var pending []config.Value
		if now != nil { // First, since what is read last decides which sections are chosen.
			pending, err = r.options.values(now)
			report.Faults = textsOf(err)
		}
		if r.file == nil {
			report.Settings, err = r.options.changedBy(new(config.File), configuration{Config: Default(), own: r.running.own}, r.running)
			return err
		}
		if report.Settings, err = r.options.values(r.file); err == nil && pending != nil {
			report.Pending, _ = config.Compare(report.Settings, pending)
		}
		return err
	})
}

// values lists the settings that a file gives and the program changes.
func (o *options) values(file *config.File) ([]config.Value, error) {
	var before, after configuration
	for _, c := range []*configuration{&before, &after} {
		c.Config = Default()
		if err := o.fill(file, c); err != nil {
			return nil, err
		}
	}
	o.change(&after)
	return o.changedBy(file, before, after)
}

// changedBy lists the settings of a configuration that a program has made of another one, which a file gave.
func (o *options) changedBy(file *config.File, before, after configuration) ([]config.Value, error) {
	written, err := o.valuesOf(file, before)
	if err != nil {
		return nil, err
	}
	values, err := o.valuesOf(file, after)
	changed, _ := config.Compare(written, values)
	for _, d := range changed {
		if d.To != nil {
			d.To.Source = fromProgram
		}
	}
	return values, err
}

// valuesOf lists the settings of a configuration and of the sections of the program.
func (o *options) valuesOf(file *config.File, c configuration) ([]config.Value, error) {
	all, err := file.Values("", c.Config)
	for i, value := range c.own {
		if err == nil {
			var own []config.Value
			own, err = o.sections[i].values(file, value)
			all = append(all, own...)
		}
	}
	return all, err
}

// textsOf returns what is wrong with files, one text a fault.
func textsOf(err error) (texts []string) {
	if faults, ok := errors.AsType[config.Errors](err); ok {
		for _, f := range faults {
			texts = append(texts, f.Error())
		}
		return texts
	}
	if err != nil {
		texts = append(texts, err.Error())
	}
	return texts
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import "github.com/quorate/quorate/downing"

// WithBuiltIns has a node find its built-in strategies in another list.
func WithBuiltIns(l downing.Catalogue) Option { return func(o *options) { o.builtIns = l } }

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Required is required, for the comparison with the document.
var Required = required

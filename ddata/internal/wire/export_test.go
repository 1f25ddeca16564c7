// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Required is required, for the comparison with the messages of the machine.
var Required = required

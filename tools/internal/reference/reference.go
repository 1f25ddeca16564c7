// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/quorate/quorate/config/manual"
)

//go:embed reference.json
var committed []byte

// Read returns the reference of the program: groups before their settings, in the order
// of declaration.
func Read() ([]manual.Setting, error) {
	var settings []manual.Setting
	if err := json.Unmarshal(committed, &settings); err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	return settings, nil
}

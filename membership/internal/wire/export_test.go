// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"maps"

	pb "github.com/quorate/quorate/membership/internal/proto/quorate/membership/v1"
)

// CheckScan says what of the scan does not fit the messages.
func CheckScan() error {
	file := (*pb.Message)(nil).ProtoReflect().Descriptor().ParentFile()
	rest := maps.Clone(limits)
	for i := range file.Messages().Len() {
		message := file.Messages().Get(i)
		for k := range message.Fields().Len() {
			field := message.Fields().Get(k)
			if field.Number() >= fieldsMax {
				return fmt.Errorf("%s has number %d, the table has %d places", field.FullName(), field.Number(), fieldsMax)
			}
			name := columnName{message.Name(), field.Name()}
			if _, limited := rest[name]; limited && !field.IsList() {
				return fmt.Errorf("%s has a limit and is no list", field.FullName())
			}
			delete(rest, name)
		}
	}
	if len(rest) > 0 {
		return fmt.Errorf("limits of lists that do not exist: %v", rest)
	}
	return nil
}

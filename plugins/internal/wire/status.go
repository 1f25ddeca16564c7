// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"strings"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/plugins"
)

// StatusName returns the name of the status of a call as the documents of gRPC write it, such as DEADLINE_EXCEEDED.
func StatusName(err error) string {
	code := status.Code(err)
	if errors.Is(err, plugins.ErrUnavailable) {
		code = codes.Unavailable // There was no process to call.
	}
	switch code {
	case codes.OK:
		return "OK"
	case codes.Canceled:
		return "CANCELLED"
	default:
	}
	var name strings.Builder
	for i, r := range code.String() {
		if unicode.IsUpper(r) && i > 0 {
			name.WriteByte('_')
		}
		name.WriteRune(unicode.ToUpper(r))
	}
	return name.String()
}

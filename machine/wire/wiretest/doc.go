// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package wiretest makes codecs of other releases out of those of the present one, for tests of
// two releases in one cluster.
//
//	before := wiretest.Without(codec, wire.Path{7, 3}) // Without field 3 of the messages in field 7.
//	message, err := before.Received(message) // As a node of that release reads what one of the present release sends.
//	message, err = before.Sent(message)      // As one of the present release reads what that node sends.
//
// To a [Release] the field has a number that no release knows. So the present tables decide what
// becomes of it, as those of the release before did: a message with a row for unknown fields
// ([wire.Keep]) keeps it, another one passes it over.
//
// The functions may be called from several goroutines if those of the present codec may.
package wiretest

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package buckets

import "github.com/cespare/xxhash/v2"

// How many buckets there are, and pages in each. These numbers and [Place] never change: with others, reminders in
// stores would not be found.
const (
	Buckets = 128
	Pages   = 16
)

// Place returns the bucket of an entity, and the page in it: by the xxhash64 of kind, a zero byte and id.
func Place(kind, id string) (bucket, page int) {
	d := xxhash.New()
	_, _ = d.WriteString(kind) // It never fails.
	_, _ = d.Write([]byte{0})
	_, _ = d.WriteString(id)
	sum := d.Sum64()
	return int(sum % Buckets), int(sum / Buckets % Pages)
}
